// SPDX-License-Identifier: Apache-2.0
#include "data/first_records.h"

#include <sys/stat.h>

#include "base/tfrecord.h"
#include "configs/schema/config.pb.h"
#include "tests/data/corpus_files.h"

namespace syntra {
namespace {

DataConfig ConfigOf(const std::vector<std::string>& train,
                    const std::vector<std::string>& validation = {}) {
  DataConfig config;
  for (const std::string& pattern : train) config.add_train(pattern);
  for (const std::string& pattern : validation) config.add_validation(pattern);
  return config;
}

TEST(FirstRecords, EveryBadFileIsNamedInOneError) {
  const Path directory = ScratchDirectory("first_records");
  WriteScratch(directory / "good.jsonl", "not json\n{\"text\":\"a\"}\n@\n@\n@\n");
  const Path other =
      WriteScratch(directory / "other.jsonl", "{\"content\":\"a\"}\n{\"url\":\"a\"}\n");
  const Path cut =
      WriteScratch(directory / "cut.json.gz", Gzip("{\"text\":\"a\"}\n").substr(0, 20));
  const Path table = WriteScratch(directory / "table.csv", "label,review\n1,a\n");
  const Path fifo = directory / "fifo.txt";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const std::string message = DataErrorOf([&] {
    CheckFirstRecords(ConfigOf({directory / "*.jsonl", directory / "*.gz"},
                               {directory / "*.csv", directory / "*.txt"}));
  });
  EXPECT_TRUE(message.starts_with("4 of 5 corpus files cannot be used (data.text_field is "))
      << message;
  for (const std::string& part :
       {other.string() + ": 2 of 2 records are bad",
        std::string("the field of data.text_field is missing; its fields are \"content\""),
        cut.string() + ": byte ",
        table.string() +
            ": byte 0, line 1: the header row names no column \"text\"; its columns are "
            "\"label\", \"review\"",
        "cannot read " + fifo.string() + ": it is a FIFO, not a file"}) {
    EXPECT_NE(message.find(part), std::string::npos) << part << "\nis not in\n" << message;
  }
  EXPECT_EQ(message.find("good.jsonl"), std::string::npos) << message;
}

// CheckFirstRecords accepts and refuses the same records as preparation.
TEST(FirstRecords, FollowsThePolicyForBadRecords) {
  const Path directory = ScratchDirectory("first_policy");
  const Path path = WriteScratch(directory / "a.jsonl", "@\n{\"text\":\"a\"}\n");
  DataConfig config = ConfigOf({path});
  EXPECT_NO_THROW(CheckFirstRecords(config));
  config.set_on_bad_record(DataConfig::FAIL);
  EXPECT_NE(
      DataErrorOf([&] { CheckFirstRecords(config); }).find("line 1: line cannot be read as JSON"),
      std::string::npos);
  WriteScratch(path, "@\n@\n");
  config.set_on_bad_record(DataConfig::SKIP);
  EXPECT_NE(DataErrorOf([&] { CheckFirstRecords(config); }).find("2 of 2 records are bad"),
            std::string::npos);
  config.set_max_bad_fraction(1);
  EXPECT_EQ(DataErrorOf([&] { CheckFirstRecords(config); }),
            "data.train: no document in " + path.string());
}

TEST(FirstRecords, FilesWithoutADocumentAreNamed) {
  const Path directory = ScratchDirectory("first_empty");
  const std::vector<Path> empty = {WriteScratch(directory / "0.txt", ""),
                                   WriteScratch(directory / "1.txt", "\n\n"),
                                   WriteScratch(directory / "2.txt.gz", Gzip("")),
                                   WriteScratch(directory / "3.jsonl", "{\"text\":\"\"}\n")};
  const std::string all = directory / "*";
  EXPECT_EQ(DataErrorOf([&] { CheckFirstRecords(ConfigOf({all})); }),
            "data.train: no document in " + empty[0].string() + " and 3 other files");
  // Behind an empty one there may be others.
  const Path good = WriteScratch(directory / "4.jsonl", "{\"text\":\"\"}\n{\"text\":\"a\"}\n");
  EXPECT_EQ(CheckFirstRecords(ConfigOf({all})), empty);
  EXPECT_EQ(CheckFirstRecords(ConfigOf({good})), std::vector<Path>());
  EXPECT_EQ(DataErrorOf([&] { CheckFirstRecords(ConfigOf({good}, {empty[3]})); }),
            "data.validation: no document in " + empty[3].string());
}

// Files of a gigabyte are looked at as fast as small ones; here it is damage that shows that the
// rest is not read.
TEST(FirstRecords, ReadsNoFurtherThanItMust) {
  const Path directory = ScratchDirectory("first_only");
  std::string text;
  for (int i = 0; i < 20000; ++i) text += fmt::format("{{\"text\":\"document {}\"}}\n", i * 7919);
  std::string zipped = Gzip(text);
  zipped.resize(zipped.size() - 100);
  std::vector<std::string> patterns;
  for (int i = 0; i < 50; ++i) {
    patterns.push_back(WriteScratch(directory / fmt::format("{}.json.gz", i), zipped));
  }
  EXPECT_NO_THROW(CheckFirstRecords(ConfigOf(patterns)));
}

// Cut after its first records, a TFRecord file shows it at its end; gzip and text do not.
TEST(FirstRecords, ATfRecordFileThatWasCut) {
  const Path directory = ScratchDirectory("first_cut");
  std::string frames;
  for (int i = 0; i < 1000; ++i) frames += FrameTfRecord(TfExample("text", "some words"));
  WriteScratch(directory / "whole.tfrecord", frames);
  WriteScratch(directory / "gzipped.tfrecord.gz", Gzip(frames));
  WriteScratch(directory / "empty.tfrecord", "");
  EXPECT_NO_THROW(CheckFirstRecords(ConfigOf({directory / "*.tfrecord*"})));
  // A whole number of records is a whole file.
  const size_t frame = frames.size() / 1000;
  const Path cut = WriteScratch(directory / "cut.tfrecord", frames.substr(0, 500 * frame));
  EXPECT_NO_THROW(CheckFirstRecords(ConfigOf({directory / "*.tfrecord*"})));
  for (const size_t more : {size_t{1}, size_t{12}, frame / 2, frame - 1}) {
    WriteScratch(cut, frames.substr(0, 500 * frame + more));
    const std::string message =
        DataErrorOf([&] { CheckFirstRecords(ConfigOf({directory / "*.tfrecord*"})); });
    EXPECT_TRUE(message.starts_with("1 of 4 corpus files cannot be used")) << message;
    EXPECT_NE(message.find(cut.string() + ": the TFRecord file does not end with a whole record"),
              std::string::npos)
        << message;
  }
}

TEST(FirstRecords, ManyBadFilesAreCounted) {
  const Path directory = ScratchDirectory("first_many");
  for (int i = 0; i < 30; ++i) WriteScratch(directory / fmt::format("{}.csv", i), "a\nb\n");
  const std::string message =
      DataErrorOf([&] { CheckFirstRecords(ConfigOf({directory / "*.csv"})); });
  EXPECT_TRUE(message.starts_with("30 of 30 corpus files cannot be used (data.text_field is "))
      << message;
  EXPECT_TRUE(message.ends_with("\n  ... and 20 more")) << message;
}

}  // namespace
}  // namespace syntra
