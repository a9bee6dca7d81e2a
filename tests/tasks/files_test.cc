// SPDX-License-Identifier: Apache-2.0
// Files that are not there, and several tasks at once.
#include <gtest/gtest.h>

#include "base/text.h"
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
  EXPECT_NE(message.find("3 files that the tasks need are missing"), std::string::npos) << message;
  EXPECT_NE(message.find(directory.string()), std::string::npos) << message;
}

TEST(RequireFiles, IsContentWithEitherLayout) {
  const auto tasks = MakeTasks(TwoTasks());
  EXPECT_TRUE(MissingFiles(tasks, TaskSample()).empty());
  EXPECT_EQ(MissingFiles({&tasks[1], 1}, TaskSample() / "MRPC_microsoft"),
            std::vector<std::string>());
}

// A task over a training file and test files of these contents.
class NamedFiles {
 public:
  explicit NamedFiles(const std::vector<std::string>& contents) {
    std::vector<std::string> tests;
    for (size_t i = 0; i < contents.size(); ++i) {
      tests.push_back(fmt::format("test: 'test_{}.tsv'", i));
      WriteScratch(directory_ / fmt::format("test_{}.tsv", i), contents[i]);
    }
    WriteScratch(directory_ / "train.tsv", "text\tlabel\na\tx\n");
    task_ = TaskOf("classification { name: 'news' train: 'train.tsv' label: ['x', 'y'] " +
                   Join(tests, " ") + " }");
  }

  const Task& task() const { return *task_; }
  const Path& directory() const { return directory_; }
  std::vector<std::string> Missing() const { return MissingFiles({&task_, 1}, directory_); }
  void CheckTest() const {
    CheckExamples(*task_, SplitOf(*task_, "test"),
                  {.directory = directory_, .policy = {.fail = true, .max_fraction = 0}});
  }

 private:
  Path directory_ = ScratchDirectory("named");
  std::unique_ptr<Task> task_;
};

// Those of the official layouts may be absent.
TEST(RequireFiles, TestFilesThatTheConfigurationNamesMustBeThere) {
  const NamedFiles files({"text\na\n", "text\nb\n"});
  EXPECT_TRUE(files.Missing().empty());
  RemoveAll(files.directory() / "test_1.tsv");
  EXPECT_EQ(files.Missing(), std::vector<std::string>{"test_1.tsv"});
  EXPECT_EQ(TestSplits(files.task(), files.directory()).size(), 1u);
  const Path nothing = ScratchDirectory("nothing");
  EXPECT_TRUE(TestSplits(*TaskOf("cola {}"), nothing).empty());
  const auto mnli = TaskOf("mnli {}");
  const auto there = TestSplits(*mnli, TaskSample());
  EXPECT_FALSE(there.empty());
  for (const TaskSplit* split : there) EXPECT_EQ(split->use, TaskSplit::Use::kTest);
}

// The files of an official layout belong together: none of them need be readable alone.
TEST(CheckExamples, TakesEveryOfficialLayout) {
  int microsofts = 0, dpr = 0;
  for (const Path& directory : {TaskSample(), TaskSample() / "MRPC_microsoft"}) {
    for (const std::string& kind : OfficialKinds()) {
      const auto task = TaskOf(kind + " {}");
      for (const TaskSplit& split : task->traits().splits) {
        const std::vector<Path> files = FilesOf(split, directory);
        if (files.empty()) continue;
        CheckExamples(*task, split, {.directory = directory, .policy = {.max_fraction = 1}});
        microsofts += files.back().filename() == "dev_ids.tsv";
        dpr += files.back().parent_path().filename() == "DPR";
      }
    }
  }
  EXPECT_EQ(microsofts, 2);
  EXPECT_EQ(dpr, 1);
}

// A bad row is found wherever it is, unless the file is large.
TEST(CheckExamples, ReadsSmallFilesThroughAndLooksAtTheBeginningOfEach) {
  const std::string good = "text\na\n", bad = "too\tmany\n";
  EXPECT_NO_THROW(NamedFiles({good, good}).CheckTest());
  const std::string late = DataErrorOf([&] { NamedFiles({good, good + bad}).CheckTest(); });
  EXPECT_NE(late.find("test_1.tsv: byte 7, line 3: row has more or fewer fields"),
            std::string::npos)
      << late;
  const std::string large = good + std::string(17 << 20, 'b') + "\n";
  EXPECT_NO_THROW(NamedFiles({good, large + bad}).CheckTest());
  const auto error_of = [&](const std::string& second) {
    return DataErrorOf([&] { NamedFiles({good, second}).CheckTest(); });
  };
  const std::string column = error_of("body\nb\n");
  EXPECT_NE(column.find("test_1.tsv"), std::string::npos) << column;
  EXPECT_NE(column.find("no column \"text\""), std::string::npos) << column;
  EXPECT_NE(column.find("reading the test split of task news"), std::string::npos) << column;
  EXPECT_NE(error_of("text\ntoo\tmany\nb\n").find("line 2"), std::string::npos);
  const std::string empty = DataErrorOf([] { NamedFiles({"text\n"}).CheckTest(); });
  EXPECT_NE(empty.find("there is no example in it"), std::string::npos) << empty;
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

// The test split of one task would have the place of the other's validation split.
TEST(MakeTasks, TwoThatWriteTheSamePredictionsAreRefused) {
  const auto add = [](const std::string& name, DataConfig* config) {
    TextToTextTask* task = config->add_task()->mutable_text_to_text();
    task->set_name(name);
    task->add_train("a.tsv");
    return task;
  };
  DataConfig config;
  add("news", &config)->add_test("b.tsv");
  TextToTextTask* second = add("news_test", &config);
  EXPECT_EQ(MakeTasks(config).size(), 2u);
  second->add_validation("c.tsv");
  try {
    MakeTasks(config);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kConfig);
    EXPECT_NE(std::string(error.what())
                  .find("the tasks \"news\" and \"news_test\" would both write "
                        "predictions/news_test.jsonl"),
              std::string::npos)
        << error.what();
  }
}

TEST(PredictionsName, TellsTheSplitsOfATaskApart) {
  const std::unique_ptr<Task> task = TaskOf("mnli {}");
  const auto name_of = [&](const char* split) {
    return PredictionsName(task->traits(), SplitOf(*task, split));
  };
  EXPECT_EQ(name_of("validation_matched"), "mnli_matched");
  EXPECT_EQ(name_of("test_matched"), "mnli_test_matched");
  EXPECT_EQ(name_of("ax"), "mnli_ax");
  const std::unique_ptr<Task> cola = TaskOf("cola {}");
  EXPECT_EQ(PredictionsName(cola->traits(), SplitOf(*cola, "validation")), "cola");
}

}  // namespace
}  // namespace syntra
