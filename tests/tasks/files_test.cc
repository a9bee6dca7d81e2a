// SPDX-License-Identifier: Apache-2.0
// Files that are not there, and several tasks at once.
#include <gtest/gtest.h>

#include "tests/data/corpus_files.h"
#include "tests/tasks/tasks.h"

namespace syntra {
namespace {

DataConfig TwoTasks() {
  DataConfig config;
  config.add_task()->mutable_cola();
  config.add_task()->mutable_mrpc();
  return config;
}

TEST(RequireFiles, ListsAllThatAreMissingInOneError) {
  const Path directory = ScratchDirectory("some");
  CreateDirectories(directory / "CoLA");
  WriteScratch(directory / "CoLA/train.tsv", "x\t1\t\ta\n");
  const auto tasks = MakeTasks(TwoTasks());
  EXPECT_EQ(
      MissingFiles(tasks, directory),
      (std::vector<std::string>{
          "CoLA/dev.tsv", "MRPC/train.tsv, or MRPC/msr_paraphrase_train.txt and MRPC/dev_ids.tsv",
          "MRPC/dev.tsv, or MRPC/msr_paraphrase_train.txt and MRPC/dev_ids.tsv"}));
  const std::string message = DataErrorOf([&] { RequireFiles(tasks, directory); });
  EXPECT_NE(message.find("3 files of the tasks are not there"), std::string::npos) << message;
  EXPECT_NE(message.find(directory.string()), std::string::npos) << message;
}

TEST(RequireFiles, IsContentWithEitherLayout) {
  const auto tasks = MakeTasks(TwoTasks());
  EXPECT_TRUE(MissingFiles(tasks, TaskSample()).empty());
  EXPECT_EQ(MissingFiles({&tasks[1], 1}, TaskSample() / "MRPC_microsoft"),
            std::vector<std::string>());
}

TEST(FilesOf, ExtrasAreReadWhereTheyAre) {
  const std::unique_ptr<Task> task = TaskOf("wsc {}"), without = TaskOf("wsc { use_dpr: false }");
  EXPECT_EQ(FilesOf(SplitOf(*task, "train"), TaskSample()).size(), 2u);
  EXPECT_EQ(FilesOf(SplitOf(*without, "train"), TaskSample()).size(), 1u);
  const size_t all = Read(*task, "train").size();
  EXPECT_EQ(Read(*without, "train").size(), all - 4);
}

TEST(FilesOf, DiagnosticsUnderEachOfTheirNames) {
  const std::unique_ptr<Task> task = TaskOf("mnli {}");
  for (const char* file : {"AX/AX.tsv", "diagnostic/diagnostic.tsv"}) {
    const Path directory = ScratchDirectory("diagnostics");
    CreateDirectories((directory / file).parent_path());
    WriteScratch(directory / file, "index\tsentence1\tsentence2\n0\ta\tb\n");
    EXPECT_EQ(Read(*task, "ax", directory)[0].inputs, "mnli hypothesis: b premise: a");
  }
}

TEST(MakeTasks, TwoOfOneNameAreRefused) {
  DataConfig config;
  config.add_task()->mutable_rte();
  config.add_task()->mutable_superglue_rte();
  try {
    MakeTasks(config);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kConfig);
    EXPECT_NE(std::string(error.what()).find("two tasks called \"rte\""), std::string::npos);
  }
  config.clear_task();
  config.add_task();
  EXPECT_THROW(MakeTasks(config), Error);
}

}  // namespace
}  // namespace syntra
