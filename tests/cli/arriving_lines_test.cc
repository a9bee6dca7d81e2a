// SPDX-License-Identifier: Apache-2.0
// Blocks of lines from a pipe.
#include "cli/arriving_lines.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/output.h"
#include "tests/base/error_of.h"

namespace syntra {
namespace {

using Lines = std::vector<std::string>;

class Arriving : public testing::Test {
 protected:
  Arriving() {
    std::signal(SIGPIPE, SIG_IGN);
    EXPECT_EQ(pipe(ends_), 0);
    lines_.emplace(ends_[0]);
  }
  ~Arriving() override {
    close(ends_[0]);  // a writer need not go on
    if (writer_.joinable()) writer_.join();
    Close();
  }
  // By another thread, since a pipe holds 64 KiB.
  void Write(const std::string& text) {
    writer_ = std::thread([this, text] {
      WriteAll(ends_[1], text);
      Close();
    });
  }
  void Close() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }

  int ends_[2];
  std::optional<ArrivingLines> lines_;
  std::thread writer_;
};

TEST_F(Arriving, WhatIsThereComesBeforeTheEnd) {
  const Clock::time_point start = Clock::now();
  EXPECT_EQ(lines_->Next(0.01), Lines());
  EXPECT_FALSE(lines_->ended());
  ASSERT_TRUE(WriteAll(ends_[1], "one\n\nthr"));
  EXPECT_EQ(lines_->Next(20), (Lines{"one", ""}));
  ASSERT_TRUE(WriteAll(ends_[1], "ee\nrest"));
  EXPECT_EQ(lines_->Next(20), Lines{"three"});
  EXPECT_LT(SecondsSince(start), 10);
  EXPECT_FALSE(lines_->ended());
  Close();
  EXPECT_EQ(lines_->Next(20), Lines{"rest"});
  EXPECT_TRUE(lines_->ended());
  EXPECT_EQ(lines_->Next(20), Lines());
}

TEST_F(Arriving, AByteOrderMarkIsNoPartOfTheFirstLine) {
  ASSERT_TRUE(WriteAll(ends_[1], "\xEF\xBB"));
  EXPECT_EQ(lines_->Next(0.01), Lines());
  ASSERT_TRUE(WriteAll(ends_[1], "\xBFone\n\xEF\xBB\xBFtwo\n"));
  EXPECT_EQ(lines_->Next(20), (Lines{"one", "\xEF\xBB\xBFtwo"}));
}

TEST_F(Arriving, LinesEndAsInCorpora) {
  ASSERT_TRUE(WriteAll(ends_[1], "one\r\n\r\ntw\ro\nthree\r"));
  EXPECT_EQ(lines_->Next(20), (Lines{"one", "", "tw\ro"}));
  Close();
  EXPECT_EQ(lines_->Next(20), Lines{"three"});
}

TEST_F(Arriving, AByteOrderMarkAloneIsNoLine) {
  Write("\xEF\xBB\xBF");
  EXPECT_EQ(lines_->Next(20), Lines());
  EXPECT_TRUE(lines_->ended());
}

TEST_F(Arriving, OtherEncodingsAreRefused) {
  Write(std::string("\xFF\xFE\x61\0\n\0", 6));
  EXPECT_EQ(ErrorOf([&] { lines_->Next(20); }, ExitCode::kData),
            "the input: byte 0: the text is UTF-16, as its byte-order mark says; convert it to "
            "UTF-8, for example with \"iconv -f UTF-16 -t UTF-8\"");
}

TEST_F(Arriving, BlocksAreFullWhateverTheReadsBring) {
  Lines all;
  std::string text;
  for (int i = 0; i < 3000; ++i) {
    all.push_back(std::string(i % 90, 'a') + std::to_string(i));
    text += all.back() + "\n";
  }
  Write(text);
  Lines read;
  std::vector<size_t> sizes;
  while (!lines_->ended()) {
    const Lines block = lines_->Next(20);
    read.insert(read.end(), block.begin(), block.end());
    if (!block.empty()) sizes.push_back(block.size());
  }
  EXPECT_EQ(read, all);
  EXPECT_EQ(sizes, (std::vector<size_t>{1024, 1024, 952}));
}

TEST_F(Arriving, ABlockOfLongLinesIsSmall) {
  const std::string line(ArrivingLines::kMostBytes / 4, 'x');
  Write(line + "\n" + line + "\n" + line + "\n" + line + "\n" + line + "\n");
  EXPECT_EQ(lines_->Next(20).size(), 4u);
  EXPECT_EQ(lines_->Next(20).size(), 1u);
}

TEST_F(Arriving, WhatIsNoTextIsRefusedAndWhatCameBeforeIsNotLost) {
  Write("good\n" + std::string(ArrivingLines::kLongestLine + (1 << 17), 'x'));
  EXPECT_EQ(lines_->Next(20), Lines{"good"});
  const std::string error = ErrorOf([&] { lines_->Next(20); }, ExitCode::kData);
  EXPECT_EQ(error, "line 2 of the input has more than 64 MiB; is it a text file?");
}

}  // namespace
}  // namespace syntra
