// SPDX-License-Identifier: Apache-2.0
// Corpus files of users: formats, paths that are not regular files, and changes between starts.
#include <sys/stat.h>

#include "tests/e2e/tiny_run.h"

namespace syntra {
namespace {

class Corpora : public TinyRun {
 protected:
  Arguments Prepare(const Path& input) const {
    return {"prepare",
            "--set",
            "data.train=" + input.string(),
            "--set",
            "data.tokenizer=" + tokenizer_.string(),
            "--output",
            Directory("prepared").string()};
  }
  void ExpectFailure(const Outcome& outcome, int code, const std::string& part) const {
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_TRUE(outcome.Says(part)) << part << "\nis not in\n" << outcome.err;
    EXPECT_FALSE(outcome.Says("bug")) << outcome.err;
  }
  // The training corpus, compressed as gzip does at this level.
  Path Compress(int level) const {
    const Path path = scratch_ / "corpus/zipped.jsonl.gz";
    const std::string command =
        fmt::format("gzip -n -{} -c '{}' > '{}'", level, training_.string(), path.string());
    EXPECT_EQ(std::system(command.c_str()), 0);
    return path;
  }
};

// A parser without memory for one line once took it for a bad record; the shard stayed, too short.
TEST_F(Corpora, AShortageOfMemoryDropsNothing) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the address sanitizer needs more address space than the limit";
#endif
  const Path input = scratch_ / "corpus/long.jsonl";
  std::string text = "{\"text\":\"a\"}\n{\"text\":\"" + std::string(40 << 20, 'x') + "\"}\n";
  ReplaceFileDurably(input, text + "{\"text\":\"b\"}\n{\"text\":\"c\"}\n");
  const Outcome outcome =
      Run(Prepare(input), {.wrapper = {"sh", "-c", "ulimit -v 400000; exec \"$@\"", "sh"}});
  ExpectFailure(outcome, 4,
                input.string() +
                    ": out of memory while reading the record at byte 13, "
                    "line 2");
  EXPECT_TRUE(ListDirectory(Directory("prepared") / "train").empty());
}

TEST_F(Corpora, WhatIsNoFileIsRefused) {
  const Path fifo = scratch_ / "corpus/fifo.jsonl";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  ExpectFailure(Run(Prepare(fifo)), 3, "it is a FIFO, not a file");
  ExpectFailure(Run(Prepare("/dev/null")), 3, "it is a device, not a file");
  ExpectFailure(Run(Prepare("/dev/zero")), 3, "it is a device, not a file");
  ExpectFailure(Run(Prepare(scratch_ / "corpus")), 2,
                "it is a directory; add /* to name all files");
  ExpectFailure(Run(Pretrain("run", {"data.train=" + fifo.string()})), 3,
                "it is a FIFO, not a file");
}

TEST_F(Corpora, ACsvFileTrains) {
  const Path table = scratch_ / "corpus/table.csv";
  std::string content = "id,body\n";
  for (int i = 0; i < 200; ++i) content += fmt::format("{},\"a b c, d e\nf g h i j k l m\"\n", i);
  ReplaceFileDurably(table, content);
  const Arguments settings = {"data.train=" + table.string(), "data.validation=" + table.string()};
  ExpectFailure(Run(Pretrain("run", settings)), 3, "its columns are \"id\", \"body\"");
  Train("run", {settings[0], settings[1], "data.text_field=body", "train.steps=4"});
}

TEST_F(Corpora, TheLineEndsOfOldMacsAreSaidOnce) {
  const Path corpus = scratch_ / "corpus/mac.txt";
  ReplaceFileDurably(corpus, "aa ba ca da ea\rfa ga ha ia ja\rka la ma\r");
  // Before the run begins its first records are looked at.
  const Outcome outcome = Run(Pretrain("run", {"data.train=" + corpus.string(), "train.steps=3"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::string warning = corpus.string() + ": it has carriage returns and no newline";
  const size_t first = outcome.err.find(warning);
  ASSERT_NE(first, std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find(warning, first + 1), std::string::npos) << outcome.err;
}

// The same text is the same corpus, however it is compressed.
TEST_F(Corpora, ARecompressedCorpusContinues) {
  const std::string files = "data.train=" + Compress(1).string();
  Train("run", {files, "train.steps=4"});
  const std::string before = ReadWholeFile(Compress(9));
  Train("run", {files, "train.steps=6"});
  EXPECT_EQ(NewestStep("run"), 6);
  // Other text is not.
  ReplaceFileDurably(training_, ReadWholeFile(training_) + "{\"text\":\"one more\"}\n");
  ASSERT_NE(ReadWholeFile(Compress(9)), before);
  ExpectFailure(Run(Pretrain("run", {files, "train.steps=8"})), 5,
                "no longer contains the text that this run was trained on");
}

TEST_F(Corpora, AnotherValidationCorpusIsNamed) {
  const char* kWarning = "was evaluated on other validation examples (the data changed)";
  Train("run", {"train.steps=4"});
  const Outcome same = Run(Pretrain("run", {"train.steps=5"}));
  EXPECT_EQ(same.code, 0) << same.err;
  EXPECT_FALSE(same.Says(kWarning)) << same.err;
  ReplaceFileDurably(validation_, ReadWholeFile(training_));
  const Outcome other = Run(Pretrain("run", {"train.steps=6"}));
  EXPECT_EQ(other.code, 0) << other.err;
  EXPECT_TRUE(other.Says(kWarning)) << other.err;
}

}  // namespace
}  // namespace syntra
