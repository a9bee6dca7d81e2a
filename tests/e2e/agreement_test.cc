// SPDX-License-Identifier: Apache-2.0
// If ranks have different settings, programs, data or checkpoints, all of them end before training,
// with one message.
#include <fstream>

#include "tests/e2e/tiny_run.h"

namespace syntra {
namespace {

class Agreement : public TinyRun {
 protected:
  void SetUp() override {
    if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
    TinyRun::SetUp();
  }

  // Two ranks, the second with `other` in the place of `settings`.
  Outcome Start(const Arguments& settings, const Arguments& other, const std::string& folder = "") {
    return Run(Pretrain("run", settings), {.ranks = 2,
                                           .environment = {"OMPI_MCA_orte_execute_quiet=1"},
                                           .other_arguments = Pretrain("run", other),
                                           .other_folder = folder});
  }
  // A program that is `syntra` on rank 0, and this shell command on rank 1.
  std::string Wrapper(const std::string& command) const {
    const Path path = scratch_ / "wrapper";
    ReplaceFileDurably(path,
                       fmt::format("#!/bin/sh\nif [ \"$OMPI_COMM_WORLD_RANK\" = 1 ]; then {}; fi\n"
                                   "exec {} \"$@\"\n",
                                   command, SYNTRA_BINARY));
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path.string();
  }
  static bool CanMount() {
    return std::system("unshare -m mount -t tmpfs tmpfs /mnt 2>/dev/null") == 0;
  }
  static constexpr const char* kNoMounts = "no mount namespaces here";
  // `syntra`, which on rank 1 sees its files after `mount` with these arguments.
  std::string WithMount(const std::string& arguments) const {
    return Wrapper(fmt::format("exec unshare -m sh -c 'mount {} && exec \"$@\"' sh {} \"$@\"",
                               arguments, SYNTRA_BINARY));
  }
  // One message, and nothing else.
  static void ExpectOneMessage(const Outcome& outcome) {
    EXPECT_TRUE(outcome.err.starts_with("error: the ranks of this job have different "))
        << outcome.err;
    EXPECT_EQ(outcome.err.find("rank 1: "), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find("error: ", 1), std::string::npos) << outcome.err;
  }
};

TEST_F(Agreement, SettingsAreComparedFieldByField) {
  const Arguments settings{"train.steps=6"};
  const Arguments other{"train.steps=7",
                        "data.train=" + validation_.string(),
                        "model.dropout=0.2",
                        "train.batch_size=4",
                        "train.precision=BF16",
                        "train.seed=3",
                        "evaluation.every=3",
                        "checkpoint.every=4",
                        "optimizer.schedule.rate=0.02",
                        "train.directory=" + Directory("other").string(),
                        "train.threads=2"};
  const Outcome outcome = Start(settings, other);
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  ExpectOneMessage(outcome);
  EXPECT_TRUE(outcome.Says("different settings:\n")) << outcome.err;
  for (const char* line :
       {"\n  train.steps: 6 on rank 0, 7 on rank 1\n",
        "\n  model.dropout: 0.1 on rank 0, 0.2 on rank 1\n",
        "\n  train.batch_size: 8 on rank 0, 4 on rank 1\n",
        "\n  train.precision: FP32 on rank 0, BF16 on rank 1\n",
        "\n  train.seed: 1 on rank 0, 3 on rank 1\n",
        "\n  evaluation.every: 5 on rank 0, 3 on rank 1\n",
        "\n  checkpoint.every: 5 on rank 0, 4 on rank 1\n",
        "\n  optimizer.schedule.rate: 0.01 on rank 0, 0.02 on rank 1\n", "\n  data.train[0]: \"",
        "\n  train.directory: \"", "\nStart all ranks with the same configuration"}) {
    EXPECT_TRUE(outcome.Says(line)) << line << " is not in\n" << outcome.err;
  }
  EXPECT_FALSE(outcome.Says("train.threads")) << outcome.err;
  // Nothing was made.
  EXPECT_FALSE(std::filesystem::exists(Directory("run")));
  EXPECT_FALSE(std::filesystem::exists(Directory("other")));
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "prepared"));
}

TEST_F(Agreement, AMixerThatOneRankLacks) {
  const Outcome outcome =
      Start({}, {"model.decoder_mixer={ attention { heads: 2 head_size: 16 term { dense {} } } }"});
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  ExpectOneMessage(outcome);
  EXPECT_TRUE(outcome.Says("model.decoder_mixer.attention.heads: nothing on rank 0, 2 on rank 1"))
      << outcome.err;
}

TEST_F(Agreement, ThreadsMayDiffer) {
  const Outcome outcome = Start({"train.steps=3"}, {"train.steps=3", "train.threads=2"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST_F(Agreement, CommandsAreCompared) {
  const Outcome outcome = Run(Pretrain("run"), {.ranks = 2,
                                                .environment = {"OMPI_MCA_orte_execute_quiet=1"},
                                                .other_arguments = {"eval", "--checkpoint", "x"}});
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  ExpectOneMessage(outcome);
  EXPECT_TRUE(outcome.Says("command: pretrain on rank 0, eval on rank 1")) << outcome.err;
}

// A relative path means other files in another folder.
TEST_F(Agreement, DataAreCompared) {
  for (const std::string split : {"train", "validation"}) {
    const Path here = scratch_ / (split + "_here"), there = scratch_ / (split + "_there");
    CreateDirectories(here);
    CreateDirectories(there);
    std::filesystem::copy(training_, here / "some.jsonl");
    std::filesystem::copy(validation_, there / "some.jsonl");
    const Arguments arguments =
        Pretrain("run", {"data." + split + "=some.jsonl", "data.prepared=prepared"});
    const Outcome outcome = Run(arguments, {.ranks = 2,
                                            .environment = {"OMPI_MCA_orte_execute_quiet=1"},
                                            .wrapper = {"env", "-C", here.string()},
                                            .other_arguments = arguments,
                                            .other_folder = there.string()});
    EXPECT_EQ(outcome.code, 3) << outcome.err;
    const std::string other = split == "train" ? "validation" : "train";
    EXPECT_TRUE(outcome.Says("error: the ranks of this job have different data:\n  data." + split +
                             ", digest: "))
        << outcome.err;
    EXPECT_FALSE(outcome.Says("data." + other + ", digest")) << outcome.err;
    EXPECT_EQ(NewestStep("run"), -1);
  }
}

TEST_F(Agreement, ProgramsAreCompared) {
  const Path copy = scratch_ / "syntra";
  std::filesystem::copy(SYNTRA_BINARY, copy);
  std::ofstream(copy, std::ios::app) << "another build";
  const Outcome outcome =
      Run(Pretrain("run"), {.program = Wrapper(fmt::format("exec {} \"$@\"", copy.string())),
                            .ranks = 2,
                            .environment = {"OMPI_MCA_orte_execute_quiet=1"}});
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  ExpectOneMessage(outcome);
  EXPECT_TRUE(outcome.Says("different programs:\n  program file: ")) << outcome.err;
}

// As where the run directory is not on a shared file system.
TEST_F(Agreement, CheckpointsAreCompared) {
  if (!CanMount()) GTEST_SKIP() << kNoMounts;
  Train("run", {"train.steps=5"});
  const Path place = CheckpointPath("run", 5).parent_path();
  const Outcome outcome =
      Run(Pretrain("run", {"train.steps=10"}),
          {.program = WithMount("-t tmpfs tmpfs " + place.string()), .ranks = 2});
  EXPECT_EQ(outcome.code, 5) << outcome.err;
  EXPECT_TRUE(outcome.Says("step-0000000005: there on rank 0, missing on rank 1")) << outcome.err;
}

// As where a run saves after rank 0 has looked for its newest checkpoint, and before rank 1 does.
TEST_F(Agreement, AllRanksUseTheCheckpointThatRank0Finds) {
  if (!CanMount()) GTEST_SKIP() << kNoMounts;
  Train("source", {"train.steps=5"});
  std::filesystem::copy(Directory("source"), Directory("later"),
                        std::filesystem::copy_options::recursive);
  Train("later", {"train.steps=10"});
  const std::string program =
      WithMount(fmt::format("--bind {} {}", CheckpointPath("later", 10).parent_path().string(),
                            CheckpointPath("source", 5).parent_path().string()));
  const std::string source = Directory("source").string();
  const Outcome evaluated = Run({"eval", "--checkpoint", source}, {.program = program, .ranks = 2});
  EXPECT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_EQ(evaluated.out, Run({"eval", "--checkpoint", source}).out);
  const Arguments settings{"train.steps=3", "checkpoint.initial=" + source};
  const Outcome started = Run(Pretrain("run", settings), {.program = program, .ranks = 2});
  EXPECT_EQ(started.code, 0) << started.err;
  EXPECT_TRUE(started.Says("parameters of " + CheckpointPath("source", 5).string())) << started.err;
}

TEST_F(Agreement, EvaluationsAreComparedToo) {
  Train("run", {"train.steps=5"});
  const Arguments evaluate{"eval", "--checkpoint", Directory("run").string()};
  EXPECT_EQ(Run(evaluate, {.ranks = 2}).code, 0);
  Arguments other = evaluate;
  other.insert(other.end(), {"--set", "evaluation.batches=1"});
  const Outcome outcome =
      Run(evaluate,
          {.ranks = 2, .environment = {"OMPI_MCA_orte_execute_quiet=1"}, .other_arguments = other});
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  ExpectOneMessage(outcome);
  EXPECT_TRUE(outcome.Says("evaluation.batches: 2 on rank 0, 1 on rank 1")) << outcome.err;
}

}  // namespace
}  // namespace syntra
