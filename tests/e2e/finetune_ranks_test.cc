// SPDX-License-Identifier: Apache-2.0
// `finetune` on ranks that must know the same: of a model that diverges, and of files that differ.
#include "tests/e2e/toy_task.h"

namespace syntra {
namespace {

using Finetune = ToyTask;

// All ranks of a model that writes nonsense know it, in whichever way it decodes.
TEST_F(Finetune, AModelThatDivergesEndsTheRun) {
  for (const std::string decoding : {"{ greedy {} }", "{ beam { size: 2 } }"}) {
    for (const int ranks : {1, 2}) {
      if (ranks > 1 && MpirunPath().empty()) continue;
      const std::string name = fmt::format("run-{}-{}", decoding.size(), ranks);
      const Outcome outcome =
          Run(Command(name, {"optimizer.schedule.rate=2e38", "train.steps=2", "evaluation.every=1",
                             "checkpoint.every=0", "decoding=" + decoding}),
              {.ranks = ranks});
      EXPECT_EQ(outcome.code, 6) << decoding << outcome.err;
      EXPECT_NE(File(name, "events.jsonl").find("\"failed\""), std::string::npos);
    }
  }
}

// Before training, though they are read after it.
TEST_F(Finetune, TestFilesOfRanksAreCompared) {
  if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
  const Path there = scratch_ / "there";
  CreateDirectories(there);
  for (const char* name : {"train.tsv", "dev.tsv", "test.tsv"}) {
    std::filesystem::copy(scratch_ / name, there / name);
  }
  std::string rows = ReadWholeFile(there / "test.tsv");
  std::swap(rows[rows.find("ga")], rows[rows.find("ha")]);
  ReplaceFileDurably(there / "test.tsv", rows);
  const Arguments command = Command("a", {"data.directory=."});
  const Outcome outcome = Run(command, {.ranks = 2,
                                        .environment = {"OMPI_MCA_orte_execute_quiet=1"},
                                        .wrapper = {"env", "-C", scratch_.string()},
                                        .other_arguments = command,
                                        .other_folder = there.string()});
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  EXPECT_TRUE(outcome.Says("different test files:\n  toy_test, digest of its files: "))
      << outcome.err;
}

}  // namespace
}  // namespace syntra
