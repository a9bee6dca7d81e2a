// SPDX-License-Identifier: Apache-2.0
// The checks before a run, except those of memory (preflight_memory_test.cc).
#include <unistd.h>

#include "base/output.h"
#include "config/config.h"
#include "data/training_data.h"
#include "run/run_lock.h"
#include "tests/base/child_process.h"
#include "tests/base/error_of.h"
#include "tests/base/small_disk.h"
#include "tests/train/preflights.h"
#include "train/disk_needs.h"
#include "train/task_data.h"

namespace syntra {
namespace {

using State = Finding::State;

TEST_F(Preflights, WhatIsRightPassesAndNothingIsMade) {
  for (const Finding& finding : All()) {
    EXPECT_EQ(finding.state, State::kGood) << finding.subject << ": " << finding.detail;
  }
  EXPECT_FALSE(std::filesystem::exists(Run()));
}

TEST_F(Preflights, SettingsWithoutEffect) {
  Set("optimizer.beta1", "0.5");
  Set("train.profile.first_step", "20");
  ExpectWarning("settings",
                "optimizer.beta1 has no effect: ADAFACTOR does not use it\n  "
                "train.profile.first_step has no effect: train.profile.steps is 0");
}

TEST_F(Preflights, APrecisionThatIsSlowerThanTheOther) {
  const bool has_bf16 = CpuBackend().MultipliesBFloat16();
  const Finding wide = Of("precision");
  EXPECT_EQ(wide.state, State::kGood);
  EXPECT_EQ(wide.detail, has_bf16 ? "FP32; BF16 would be faster on this processor" : "FP32");
  Set("train.precision", "BF16");
  const Finding narrow = Of("precision");
  EXPECT_EQ(narrow.state, has_bf16 ? State::kGood : State::kWarning) << narrow.detail;
}

TEST_F(Preflights, ARunDirectoryThatIsAFile) {
  Write("run", "");
  ExpectFailure("run directory", ExitCode::kResources, "run is a file");
  Set("train.directory", '"' + (Run() / "inner").string() + '"');
  ExpectFailure("run directory", ExitCode::kResources, "run is a file");
}

TEST_F(Preflights, ARunDirectoryThatIsAComparison) {
  Write("run/comparison.json", "{}");
  ExpectFailure("run directory", ExitCode::kConfig, "run is the directory of a comparison");
  Write("run/run.json", "{}");
  EXPECT_EQ(Of("run directory").state, State::kGood);
}

TEST_F(Preflights, PreparedIsAFile) {
  Write("prep", "");
  Set("data.prepared", '"' + (scratch_ / "prep").string() + '"');
  ExpectFailure("token shards", ExitCode::kResources, "prep is a file; set another data.prepared");
}

TEST_F(Preflights, ALockedRun) {
  CreateDirectories(Run());
  {
    const RunLock lock(Run());
    ExpectFailure("lock", ExitCode::kLocked, fmt::format("in use by process {}", getpid()));
  }
  EXPECT_EQ(Of("lock").state, State::kGood);
}

TEST_F(Preflights, TheModelOfTheCheckpointsIsAnother) {
  Save(50);
  EXPECT_EQ(Of("checkpoints").state, State::kGood);
  Set("model.width", "64");
  ExpectFailure("checkpoints", ExitCode::kCheckpoint, "model.width: 32 -> 64");
}

TEST_F(Preflights, ATokenizerOfOtherBytes) {
  Save(50);
  const Path other = scratch_ / "other.model";
  // A field that nobody reads.
  ReplaceFileDurably(other, ReadWholeFile(kTokenizer) + std::string("\xA2\x06\x01x", 4));
  Set("data.tokenizer", '"' + other.string() + '"');
  ExpectFailure("checkpoints", ExitCode::kCheckpoint, "the tokenizer changed: digest ");
}

TEST_F(Preflights, FewerStepsThanAreDone) {
  Save(100);
  EXPECT_EQ(Of("checkpoints").state, State::kGood);
  Set("train.steps", "50");
  ExpectFailure("checkpoints", ExitCode::kConfig,
                "train.steps is 50, but 100 steps of this run are done");
}

TEST_F(Preflights, AChangedScheduleTellsWhatItDoesToTheRate) {
  Save(50);
  Set("train.steps", "1000");
  ExpectWarning("checkpoints",
                "train.steps: 100 -> 1000; the learning rate of the next step changes from "
                "0.004949 to 0.009499");
  Set("train.log_every", "7");
  Set("train.steps", "100");
  const Finding free = Of("checkpoints");
  EXPECT_EQ(free.state, State::kGood);
  EXPECT_NE(free.detail.find("changed: train.log_every: 0 -> 7"), std::string::npos) << free.detail;
}

TEST_F(Preflights, AnotherCorpusIsRefusedBeforeItIsTokenized) {
  const CorpusIndex index = Prepare();
  Save(50, ToHex(index.DataDigest()));
  EXPECT_EQ(Of("checkpoints").state, State::kGood);
  Write("corpus/b.jsonl", "{\"text\": \"more\"}\n{\"text\": \"text\"}\n");
  Set("data.train", '"' + (scratch_ / "corpus/*.jsonl").string() + '"');
  ExpectFailure("checkpoints", ExitCode::kCheckpoint,
                "files: 1 then, 2 now); the first difference: b.jsonl in place of nothing");
  EXPECT_TRUE(
      Of("checkpoints").detail.ends_with("start from its parameters with checkpoint.initial"));
}

TEST_F(Preflights, AnEndingThatIsNotKnown) {
  Write("corpus/a.xls", "text\none way\n");
  Set("data.train", '"' + (scratch_ / "corpus/a.xls").string() + '"');
  ExpectFailure("first records", ExitCode::kData, "a.xls");
  EXPECT_NE(Of("first records").detail.find("name it *.json"), std::string::npos);
}

TEST_F(Preflights, ATextFieldThatNoRecordHas) {
  Set("data.text_field", "body");
  ExpectFailure("first records", ExitCode::kData, "body");
}

TEST_F(Preflights, FilesWithoutADocument) {
  EXPECT_EQ(Of("first records").detail, "every file begins with documents");
  Write("corpus/b.jsonl", "\n");
  Set("data.train", '"' + (scratch_ / "corpus/*.jsonl").string() + '"');
  ExpectWarning("first records",
                "1 file without a document, such as " + (scratch_ / "corpus/b.jsonl").string());
  Write("corpus/a.jsonl", "");
  ExpectFailure("first records", ExitCode::kData, "data.train: no document in ");
}

TEST_F(Preflights, WhatNeedsAFailedCheckIsSkipped) {
  Set("train.batch_size", "7");
  const std::vector<Finding> findings = All(2);
  EXPECT_EQ(findings.at(0).state, State::kFailed);
  for (const Finding& finding : findings) {
    const bool needs_the_model = finding.subject == "memory" || finding.subject == "disk";
    EXPECT_EQ(finding.state == State::kSkipped, needs_the_model) << finding.subject;
  }
}

TEST_F(Preflights, AllFailuresAreOneError) {
  Write("run", "");
  Set("data.text_field", "body");
  const std::string text = ErrorOf([&] { RequireNoFailure(All()); }, ExitCode::kData);  // the first
  EXPECT_TRUE(text.starts_with("error: ")) << text;
  EXPECT_NE(text.find("\nerror: "), std::string::npos) << text;
  EXPECT_NE(text.find("2 errors"), std::string::npos) << text;
}

TEST_F(Preflights, ARateThatIsNeverReachedIsNamed) {
  Set("optimizer.schedule.kind", "CONSTANT");
  Set("optimizer.schedule.warmup_steps", "99");
  EXPECT_EQ(Of("schedule").state, State::kGood);
  Set("optimizer.schedule.warmup_steps", "100");
  ExpectWarning("schedule",
                "rises to its rate 0.01 over warmup_steps 100, but the run ends after 100");
}

// Of the sample's 32,100 tokens. A model that was trained keeps its rows.
TEST_F(Preflights, FarMoreRowsThanTokensAreNamed) {
  Set("model.vocabulary_size", "48192");
  EXPECT_EQ(Of("tokenizer").state, State::kGood);
  Set("model.vocabulary_size", "48194");
  ExpectWarning("tokenizer",
                "model.vocabulary_size is 48194, but there are 32100 tokens: rows without a token "
                "take memory and time, and 32128 would do");
  Save(50);
  EXPECT_EQ(Of("tokenizer").state, State::kGood);
}

// What is to be changed: the rows of a new model, the tokenizer of a trained one.
TEST_F(Preflights, MoreTokensThanRows) {
  const std::string grow =
      "model.vocabulary_size 640 is smaller than the tokenizer's 32100 tokens "
      "(32000 pieces and 100 sentinels); set it to 32128";
  const std::string keep =
      "has 32100 tokens (32000 pieces and 100 sentinels), but the model, which "
      "has been trained, has rows for 640";
  Set("model.vocabulary_size", "640");
  ExpectFailure("tokenizer", ExitCode::kConfig, grow);
  const std::vector<float> values(640 * 32);
  const TensorRecord embedding{
      "parameters/embedding", {DType::kF32, {640, 32}}, std::as_bytes(std::span(values)).data()};
  SaveCheckpoint(scratch_ / "start", {.step = 1, .run_id = "s", .attributes = {}},
                 std::span(&embedding, 1), {});
  Set("checkpoint.initial", '"' + (scratch_ / "start").string() + '"');
  ExpectFailure("tokenizer", ExitCode::kConfig, keep);
  Set("model.vocabulary_size", "642");  // not the start's
  ExpectFailure("tokenizer", ExitCode::kConfig, "model.vocabulary_size 642 is smaller");
  Set("checkpoint.initial", "\"\"");
  Save(50);
  ExpectFailure("tokenizer", ExitCode::kConfig, "has been trained, has rows for 642");
}

TEST_F(Preflights, AMistakeThatTwoChecksMeetIsToldOnce) {
  Set("data.task", "[{ classification { name: 'news' train: 'train.tsv' label: 'x' } }]");
  const std::string text = ErrorOf([&] { RequireNoFailure(All()); }, ExitCode::kConfig);
  EXPECT_TRUE(text.starts_with("task \"news\": label: give two labels or more")) << text;
  EXPECT_EQ(Of("task files").state, State::kSkipped);
}

TEST_F(Preflights, ShardsThatLieInDataPreparedItself) {
  Set("data.prepared", '"' + (scratch_ / "prep").string() + '"');
  const Tokenizer tokenizer(kTokenizer, 100);
  PrepareCorpus(
      {.patterns = {(scratch_ / "corpus/a.jsonl").string()}, .directory = scratch_ / "prep"},
      tokenizer);
  ExpectFailure("token shards", ExitCode::kData, "move its files to ");
}

TEST_F(Preflights, ShardsThatDoNotDoAreNamed) {
  Prepare();
  EXPECT_NE(Of("token shards").detail.find("1 of 1 can be used"), std::string::npos);
  Set("data.extra_ids", "50");
  ExpectWarning("token shards", "was made with another data.text_field or data.extra_ids");
}

TEST_F(Preflights, ShardsWithMoreBadRecordsThanNowPassAreNamed) {
  std::string text = "no record\n";
  for (int i = 0; i < 9; ++i) text += "{\"text\": \"one way\"}\n";
  Write("corpus/a.jsonl", text);
  Prepare();
  EXPECT_EQ(Of("token shards").state, State::kGood);
  Set("data.max_bad_fraction", "0");
  ExpectWarning("token shards",
                "was made from a file with more bad records than data.on_bad_record");
}

// A checkpoint without one is no help, nor is a run that is new.
TEST_F(Preflights, WithoutATokenizerTheMessageSaysWhatToSet) {
  Set("data.tokenizer", "");
  ExpectFailure("tokenizer", ExitCode::kConfig, "set data.tokenizer to a SentencePiece model");
  Save(50);
  ExpectFailure("tokenizer", ExitCode::kConfig, "step-0000000050 does not");
}

// A pattern may match more than was meant.
TEST_F(Preflights, ValidationFilesThatAreTrainedOn) {
  Write("corpus/b.jsonl", "{\"text\": \"a third way\"}\n");
  const std::string corpus = (scratch_ / "corpus").string();
  Set("data.validation", '"' + corpus + "/b.jsonl\"");
  EXPECT_EQ(Of("held-out data").state, State::kGood) << Of("held-out data").detail;
  std::filesystem::create_directory_symlink(scratch_ / "corpus", scratch_ / "link");
  Set("data.train", '"' + (scratch_ / "link").string() + "/*\"");
  ExpectWarning("held-out data", corpus + "/b.jsonl is among the training files, too");
  Set("data.train", '"' + corpus + "/nothing*\"");
  EXPECT_EQ(Of("held-out data").state, State::kSkipped);
  Write("train.tsv", "text\tlabel\na\tx\n");
  Write("other.tsv", "text\tlabel\na\tx\n");
  Set("data.directory", '"' + scratch_.string() + '"');
  const auto judged_by = [&](const std::string& file) {
    Set("data.task", "[{ classification { name: 'news' train: ['train.tsv'] validation: '" + file +
                         "' label: ['x', 'y'] } }]");
  };
  judged_by("other.tsv");
  EXPECT_EQ(Of("held-out data").state, State::kGood) << Of("held-out data").detail;
  judged_by("./train.tsv");
  ExpectWarning("held-out data", "task \"news\": " + (scratch_ / "./train.tsv").string() + " is");
}

// A test split is read when all is trained: what is wrong with it is known before.
TEST_F(Preflights, FilesOfATestSplit) {
  Write("train.tsv", "text\tlabel\na\tx\n");
  Write("test.tsv", "text\na\n");
  Set("data.directory", '"' + scratch_.string() + '"');
  Set("data.task",
      "[{ classification { name: 'news' train: 'train.tsv' validation: 'train.tsv' "
      "test: ['test.tsv', 'more.tsv'] label: ['x', 'y'] } }]");
  ExpectFailure("task files", ExitCode::kData, "there must be:\n  more.tsv");
  EXPECT_EQ(Of("test files").state, State::kSkipped);
  Write("more.tsv", "body\nb\n");
  EXPECT_EQ(Of("task files").state, State::kGood);
  ExpectFailure("test files", ExitCode::kData, "no column \"text\"");
  Write("more.tsv", "text\nb\n");
  EXPECT_EQ(Of("test files").state, State::kGood) << Of("test files").detail;
  EXPECT_NE(Of("test files").detail.find("news_test"), std::string::npos);
}

// No answer would be right: at the start of a run, too, whose other ranks make no checks.
TEST_F(Preflights, LabelsThatCannotBeWritten) {
  Write("train.tsv", "text\tlabel\na\t0\nb\t1\n");
  Set("data.directory", '"' + scratch_.string() + '"');
  const auto set_labels = [&](const std::string& labels) {
    Set("data.task", "[{ classification { name: 'answers' train: 'train.tsv' label: [" + labels +
                         "] label_value: ['0', '1'] } }]");
  };
  const auto expect = [&](const std::string& part) {
    ExpectFailure("labels", ExitCode::kConfig, part);
    const Tokenizer tokenizer(kTokenizer, Now().data().extra_ids());
    const std::string error =
        ErrorOf([&] { FinetuningData::Read(Now(), tokenizer); }, ExitCode::kConfig);
    EXPECT_NE(error.find(part), std::string::npos) << error;
  };
  set_labels("'<yes>', 'no'");
  expect("task \"answers\": the tokenizer cannot write the label \"<yes>\"");
  // Another tokenizer with the same normalization would not help.
  set_labels("'\ufb01', 'no'");
  expect(
      "the tokenizer normalizes the label \"\ufb01\" to \"fi\"; choose that as the label, or train "
      "one with --normalization identity, or set evaluation.rank_classification: true");
  set_labels("'a  b', 'no'");
  expect(
      "the tokenizer normalizes the label \"a  b\" to \"a b\"; choose that as the label, or set "
      "evaluation.rank_classification: true");
  set_labels("'<yes>', 'no'");
  Set("evaluation.rank_classification", "true");
  EXPECT_EQ(Of("labels").state, State::kGood) << Of("labels").detail;
  set_labels("'<', '{'");
  expect("the label \"{\" is the same as another");
  Set("evaluation.rank_classification", "false");
  Set("data.target_length", "4");
  set_labels("'yes', 'no, and this is my last word'");
  expect("but targets have 4; set data.target_length: ");
  Set("data.target_length", "20");
  EXPECT_EQ(Of("labels").state, State::kGood) << Of("labels").detail;
}

// One for each task that is judged, and none that is still among the newest checkpoints.
TEST_F(Preflights, BestCheckpointsThatAreKept) {
  Set("data.task", "[{ superglue_rte {} }, { cb {} }, { axg {} }]");
  Set("evaluation.every", "10");
  EXPECT_NE(Of("disk").detail.find("(3 checkpoints "), std::string::npos) << Of("disk").detail;
  EXPECT_NE(Of("disk").detail.find(" 2 best checkpoints "), std::string::npos);
  Set("evaluation.every", "0");
  Set("checkpoint.every", "0");
  EXPECT_EQ(Of("disk").detail.find("best"), std::string::npos) << Of("disk").detail;
  Set("checkpoint.every", "90");
  EXPECT_NE(Of("disk").detail.find(" 1 best checkpoint "), std::string::npos);
}

// A checkpoint that a stop has left takes the place of none that is due.
TEST_F(Preflights, CheckpointsThatAreStillToCome) {
  Set("checkpoint.every", "20");
  Save(20);
  Save(40);
  EXPECT_NE(Of("disk").detail.find("(1 checkpoint "), std::string::npos) << Of("disk").detail;
  Save(45);  // and the first one goes
  EXPECT_NE(Of("disk").detail.find("(2 checkpoints "), std::string::npos) << Of("disk").detail;
}

TEST_F(Preflights, DiskSpaceNowAndLater) {
  const double free = static_cast<double>(FreeDiskAt(scratch_).bytes);
  EXPECT_FALSE(CheckDisk({{"x", scratch_ / "new", 1, 1}}).is_tight);
  EXPECT_EQ(CheckDisk({{"x", scratch_, 1, 1}}).text.find("about"), std::string::npos);
  const DiskFinding estimated = CheckDisk({{"2 checkpoints", scratch_, 1024, 0},
                                           {"metrics", scratch_, 0, 2048, /*is_estimated=*/true}});
  EXPECT_TRUE(
      estimated.text.ends_with(" free, about 3.0 KiB needed before the run ends (2 "
                               "checkpoints 1.0 KiB, metrics about 2.0 KiB)"))
      << estimated.text;
  const DiskFinding later = CheckDisk({{"9 milestones", scratch_ / "new", 1, 2 * free}});
  EXPECT_TRUE(later.is_tight);
  EXPECT_NE(later.text.find("9 milestones"), std::string::npos) << later.text;
  // Two that lie on one file system are added.
  const std::string error = ErrorOf(
      [&] {
        CheckDisk(
            {{"3 checkpoints", scratch_, 0.7 * free, 0}, {"shards", scratch_, 0.7 * free, 0}});
      },
      ExitCode::kResources);
  EXPECT_NE(error.find("3 checkpoints"), std::string::npos) << error;
}

TEST_F(Preflights, InodesForTheFirstFiles) {
  const Path disk = scratch_ / "disk";
  CreateDirectories(disk);
  const Outcome ended = RunInChild([&] {
    if (!MayMount() || !MountSmallDisk(disk, "nr_inodes=5")) _exit(77);
    try {
      CheckDisk({{"checkpoints", disk / "run/checkpoints", 1, 1}});
    } catch (const Error& error) {
      PrintNote(error.what());
      _exit(static_cast<int>(error.code()));
    }
  });
  if (ended.code == 77) GTEST_SKIP() << "cannot mount a tmpfs here";
  EXPECT_EQ(ended.code, 4);
  EXPECT_TRUE(ended.Says(disk.string() + " has inodes for 4 more files and directories (df -i)"))
      << ended.err;
}

}  // namespace
}  // namespace syntra
