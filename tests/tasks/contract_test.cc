// SPDX-License-Identifier: Apache-2.0
// What holds for every row of tasks.def.
#include <gtest/gtest.h>

#include <set>

#include "tasks/referent_task.h"
#include "tests/base/error_of.h"
#include "tests/base/kinds.h"
#include "tests/data/corpus_files.h"
#include "tests/tasks/tasks.h"

namespace syntra {
namespace {

using Use = TaskSplit::Use;

class EveryTask : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Task> task_ = TaskOf(GetParam() + " {}");
  const TaskTraits& traits_ = task_->traits();

  // The splits that the sample has, all their examples.
  std::vector<std::pair<TaskSplit, std::vector<TaskExample>>> ReadAll() const {
    std::vector<std::pair<TaskSplit, std::vector<TaskExample>>> splits;
    for (const TaskSplit& split : traits_.splits) {
      if (!FilesOf(split, TaskSample()).empty())
        splits.emplace_back(split, Read(*task_, split.name));
    }
    SYNTRA_CHECK(!splits.empty(), "tests/tasks/sample has no file of {}", traits_.name);
    return splits;
  }

  bool AsksForReferents() const {
    return dynamic_cast<const ReferentTask*>(task_.get()) != nullptr;
  }

  // An answer that is right.
  Judgement JudgeRight(const TaskExample& example) const {
    return task_->Judge(example, example.targets);
  }
};

TEST_P(EveryTask, NamesItsPartsOnce) {
  EXPECT_FALSE(traits_.name.empty());
  const bool is_submitted = !traits_.benchmark.empty();
  EXPECT_TRUE(!is_submitted || traits_.benchmark == "glue" || traits_.benchmark == "superglue");
  std::set<std::string> names, files, submissions;
  for (const TaskSplit& split : traits_.splits) {
    EXPECT_TRUE(names.insert(split.name).second) << split.name;
    EXPECT_EQ(split.name == "train", split.use == Use::kTrain);
    EXPECT_EQ(!split.submission.empty(), is_submitted && split.use == Use::kTest)
        << split.name << ": test splits of benchmarks, and no others, have a file for the server";
    const bool is_new = split.submission.empty() || submissions.insert(split.submission).second;
    EXPECT_TRUE(is_new) << split.submission;
    ASSERT_FALSE(split.layouts.empty());
    EXPECT_TRUE(files.insert(split.layouts[0][0]).second);
  }
  const TaskSplit* train = TrainingSplitOf(traits_);
  EXPECT_EQ(train ? train->name : "", names.contains("train") ? "train" : "");
  EXPECT_EQ(std::set(traits_.labels.begin(), traits_.labels.end()).size(), traits_.labels.size());
}

TEST_P(EveryTask, DiagnosesAreOfATaskWithAModel) {
  if (traits_.diagnoses.empty()) return;
  EXPECT_EQ(traits_.splits.size(), 1u);
  EXPECT_TRUE(std::ranges::any_of(BenchmarkKinds(), [&](const std::string& kind) {
    const std::unique_ptr<Task> other = TaskOf(kind + " {}");
    return IsAnsweredBy(traits_, other->traits()) && other->traits().diagnoses.empty();
  }));
}

TEST_P(EveryTask, ItsMetricsExist) {
  ASSERT_FALSE(traits_.metrics.empty());
  for (const std::string& name : traits_.metrics) EXPECT_EQ(FindMetric(name).name, name);
}

TEST_P(EveryTask, TheSampleHasItsSplits) {
  for (const TaskSplit& split : traits_.splits) {
    if (split.use == Use::kTest && traits_.splits.size() > 1) continue;
    EXPECT_FALSE(FilesOf(split, TaskSample()).empty()) << split.layouts[0][0];
  }
  EXPECT_NO_THROW(RequireFiles({&task_, 1}, TaskSample()));
}

TEST_P(EveryTask, ExamplesAreWhole) {
  for (const auto& [split, examples] : ReadAll()) {
    std::set<std::string> ids;
    for (const TaskExample& example : examples) {
      EXPECT_FALSE(example.inputs.empty());
      EXPECT_FALSE(example.targets.empty());
      EXPECT_FALSE(example.id.empty());
      EXPECT_TRUE(ids.insert(example.id).second || split.use == Use::kTrain) << example.id;
      EXPECT_TRUE(example.targets != kNoTarget || split.use == Use::kTest) << example.id;
      if (!traits_.labels.empty() && example.targets != kNoTarget) {
        EXPECT_EQ(example.targets, traits_.labels[static_cast<size_t>(example.expected)]);
      }
    }
  }
}

TEST_P(EveryTask, ItsOwnAnswersScoreAHundred) {
  for (const auto& [split, examples] : ReadAll()) {
    std::vector<Judgement> judgements;
    for (const TaskExample& example : examples) {
      if (example.targets == kNoTarget) continue;
      // They ask whether the named one is meant; those that are not do not answer themselves.
      if (AsksForReferents() && example.expected != 1) continue;
      judgements.push_back(JudgeRight(example));
    }
    if (judgements.size() < 2) continue;
    const bool one_class = std::ranges::all_of(
        judgements, [&](const auto& one) { return one.expected == judgements[0].expected; });
    for (const std::string& name : traits_.metrics) {
      for (const NamedValue& value :
           FindMetric(name).Compute(judgements, static_cast<int>(traits_.labels.size()))) {
        // These are 0 where a class is not there or all are equal.
        const bool needs_all = name != "accuracy" && name != "squad";
        if (needs_all && (one_class || name == "macro_f1")) continue;
        EXPECT_NEAR(value.value, 100, 1e-9) << split.name << " " << name << " " << value.name;
      }
    }
  }
}

TEST_P(EveryTask, EveryLabelJudgesAsItself) {
  const TaskExample example{.inputs = "x", .targets = "y", .expected = 0};
  for (size_t i = 0; i < traits_.labels.size(); ++i) {
    EXPECT_EQ(task_->Judge(example, traits_.labels[i]).predicted, static_cast<double>(i));
    EXPECT_EQ(task_->Judge(example, " " + traits_.labels[i]).predicted, -1);
  }
}

TEST_P(EveryTask, InvalidTextIsNoClassAndNoScore) {
  if (traits_.name == "record") return;  // a text is a text
  const auto split = ReadAll().back();
  for (const char* text : {"", "Acceptable", "0", "<unk>", "nan"}) {
    if (traits_.name == "stsb" && std::string_view(text) == "0") continue;
    const Judgement judgement = task_->Judge(split.second[0], text);
    EXPECT_EQ(judgement.predicted_text, text);
    if (AsksForReferents() && *text) continue;  // any text names something
    EXPECT_EQ(judgement.predicted, -1) << text;
  }
}

// An answer may stop where it is settled: nothing that could follow changes what becomes of it.
TEST_P(EveryTask, WhatIsSettledStaysAsItIs) {
  const TaskExample example = ReadAll().back().second[0];
  std::vector<std::string> begun{"",   " ",   "x",   "the", "0",  "-1", "3.",     "1e",
                                 "in", "3,0", "3 .", "n",   "٣.", "_",  "\u00a0", "not"};
  for (const std::string& label : traits_.labels) {
    for (size_t length = 0; length <= label.size(); ++length) {
      begun.push_back(label.substr(0, length));
      EXPECT_FALSE(task_->IsSettled(begun.back())) << begun.back();
      begun.push_back(label.substr(0, length) + "?");
    }
  }
  std::vector<std::string> rests{"", "0", "8", " ", ".5", "e1", "nf", "an", "_0", "٣", "\n", "x"};
  for (const std::string& label : traits_.labels) {
    for (size_t from = 0; from <= label.size(); ++from) rests.push_back(label.substr(from));
  }
  int settled = 0;
  for (const std::string& text : begun) {
    if (!task_->IsSettled(text)) continue;
    ++settled;
    for (const std::string& rest : rests) {
      EXPECT_EQ(task_->Judge(example, text + rest).predicted, task_->Judge(example, text).predicted)
          << text << "|" << rest;
      const Prediction whole{example, text + rest}, cut{example, text};
      EXPECT_EQ(task_->Submission({&whole, 1}), task_->Submission({&cut, 1}));
    }
  }
  EXPECT_EQ(settled > 0, task_->CanSettle());
  EXPECT_EQ(task_->CanSettle(), !traits_.labels.empty() || traits_.name == "stsb");
}

// A line for each answer, whatever the model said; its own answers come back by index.
TEST_P(EveryTask, SubmissionsHoldEveryExample) {
  for (const auto& [split, examples] : ReadAll()) {
    std::vector<Prediction> predictions;
    for (const TaskExample& example : examples) predictions.push_back({example, "neither"});
    const std::string content = task_->Submission(predictions);
    const auto lines = static_cast<size_t>(std::ranges::count(content, '\n'));
    std::set<std::string> passages;
    for (const TaskExample& example : examples)
      passages.insert(example.id.substr(0, example.id.find('/')));
    const bool is_table = traits_.benchmark != "superglue";
    EXPECT_EQ(lines, (traits_.name == "multirc" ? passages.size() : examples.size()) + is_table);
    EXPECT_EQ(content.starts_with("index\tprediction\n"), is_table);
  }
}

TEST_P(EveryTask, PredictionLinesAreJson) {
  for (const auto& [split, examples] : ReadAll()) {
    const Json line = ParseJson(PredictionLine(*task_, {examples[0], "a \"text\"\n"}));
    EXPECT_EQ(line["input"], examples[0].inputs);
    EXPECT_EQ(line["target"], examples[0].targets);
    EXPECT_EQ(line["prediction"], "a \"text\"\n");
    EXPECT_EQ(line["id"], examples[0].id);
  }
}

TEST_P(EveryTask, WithoutItsFilesSaysWhichAndWhere) {
  const Path empty = ScratchDirectory("empty");
  const std::vector<std::string> missing = MissingFiles({&task_, 1}, empty);
  const bool only_tests = traits_.splits[0].use == Use::kTest;
  EXPECT_EQ(missing.empty(), only_tests);
  if (only_tests) return;
  const std::string message = DataErrorOf([&] { RequireFiles({&task_, 1}, empty); });
  for (const std::string& file : missing) EXPECT_NE(message.find(file), std::string::npos) << file;
  EXPECT_NE(message.find(empty.string()), std::string::npos) << message;
}

INSTANTIATE_TEST_SUITE_P(Tasks, EveryTask, testing::ValuesIn(OfficialKinds()),
                         [](const auto& info) { return info.param; });

TEST(Tasks, EveryKindOfTheSchemaHasARow) {
  const std::vector<std::string> rows = AllKinds();
  EXPECT_EQ(std::set(rows.begin(), rows.end()), KindNames<TaskConfig>());
}

// GLUE's RTE has the same name.
TEST(Tasks, OnlySuperGluesRteHasDiagnoses) {
  const std::unique_ptr<Task> glue = TaskOf("rte {}"), super_glue = TaskOf("superglue_rte {}");
  for (const char* kind : {"axb {}", "axg {}"}) {
    const std::unique_ptr<Task> diagnosis = TaskOf(kind);
    EXPECT_FALSE(IsAnsweredBy(diagnosis->traits(), glue->traits())) << kind;
    EXPECT_TRUE(IsAnsweredBy(diagnosis->traits(), super_glue->traits())) << kind;
  }
  EXPECT_TRUE(IsAnsweredBy(glue->traits(), glue->traits()));
}

// As in T5's GLUE and in the paper's tables.
TEST(Tasks, WnliIsNoPartOfAnAverage) {
  for (const std::string& kind : BenchmarkKinds()) {
    EXPECT_EQ(TaskOf(kind + " {}")->traits().is_averaged, !kind.starts_with("wnli")) << kind;
  }
}

TEST(Tasks, TheLargestClassIsTheMajorityAnswer) {
  const std::unique_ptr<Task> task = TaskOf("cola {}");
  const auto of = [&](std::vector<std::string> targets) {
    std::vector<TaskExample> train;
    for (std::string& target : targets)
      train.push_back({.inputs = "", .targets = std::move(target)});
    return MajorityAnswer(*task, train);
  };
  EXPECT_EQ(of({"acceptable", "unacceptable", "acceptable"}), "acceptable");
  EXPECT_EQ(of({"acceptable", "unacceptable"}), "unacceptable") << "the first of equals";
  EXPECT_EQ(MajorityAnswer(*TaskOf("record {}"), Read(*TaskOf("record {}"), "train")), "");
}

// What is known of a task's training examples would be that of one of them.
TEST(Tasks, TwoTrainingSplitsAreAMistake) {
  TaskTraits traits = TaskOf("cola {}")->traits();
  traits.splits.push_back({.name = "more", .use = TaskSplit::Use::kTrain, .layouts = {}});
  EXPECT_NE(ErrorOf([&] { TrainingSplitOf(traits); }, ExitCode::kInternal)
                .find("two training splits, train and more"),
            std::string::npos);
}

TEST(Tasks, LabelsWithoutExamplesAreFound) {
  using Labels = std::vector<std::string>;
  const std::unique_ptr<Task> task = TaskOf("mnli {}");
  std::vector<TaskExample> train(2);
  train[1].targets = "neutral";
  EXPECT_EQ(LabelsWithoutExamples(*task, train), (Labels{"entailment", "contradiction"}));
  for (const std::string& label : task->traits().labels) {
    train.push_back({.inputs = "", .targets = label});
  }
  EXPECT_EQ(LabelsWithoutExamples(*task, train), Labels());
  EXPECT_EQ(LabelsWithoutExamples(*TaskOf("record {}"), train), Labels());
}

}  // namespace
}  // namespace syntra
