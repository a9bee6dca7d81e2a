// SPDX-License-Identifier: Apache-2.0
#include "train/task_results.h"

#include <gtest/gtest.h>

#include "checkpoint/layout.h"
#include "checkpoint/read.h"
#include "checkpoint/save.h"
#include "run/metrics_log.h"
#include "tests/base/scratch.h"
#include "train/best_checkpoints.h"
#include "train/task_labels.h"

namespace syntra {
namespace {

// Whether the result is the best when it is added.
bool AddsBest(TaskResults* results, int64_t step, const TaskResult& result) {
  const bool best = results->IsBest(result);
  results->Add(step, result);
  return best;
}

TEST(TaskResults, TheBestIsByTheMeanOfTheValuesAndTheLaterOfEquals) {
  TaskResults results({"mrpc", "cola"});
  EXPECT_TRUE(AddsBest(&results, 10, {"mrpc", {{"f1", 80}, {"accuracy", 60}}}));
  EXPECT_TRUE(AddsBest(&results, 20, {"mrpc", {{"f1", 60}, {"accuracy", 80}}}));
  EXPECT_FALSE(AddsBest(&results, 25, {"mrpc", {{"f1", 60}, {"accuracy", 79}}}));
  EXPECT_EQ(results.Find("mrpc")->step, 20);
  EXPECT_TRUE(AddsBest(&results, 30, {"mrpc", {{"f1", 70}, {"accuracy", 71}}}));
  EXPECT_TRUE(AddsBest(&results, 30, {"cola", {{"matthews", -1}}}));
  EXPECT_EQ(results.Find("mrpc")->step, 30);
  EXPECT_EQ(results.Find("sst2"), nullptr);
  EXPECT_DOUBLE_EQ(results.Average().value(), (70.5 - 1) / 2);
  EXPECT_EQ(JsonText(results.ToJson()),
            R"({"tasks":{"mrpc":{"f1":70.0,"accuracy":71.0},"cola":{"matthews":-1.0}},)"
            R"("average":34.75,"step":30,"best_steps":{"mrpc":30,"cola":30}})");
}

TEST(TaskResults, SomeTasksAreNoPartOfTheAverage) {
  TaskResults results({"cola", "wnli"}, {"wnli"});
  const std::map<std::string, NamedValues> majority = {{"cola", {{"matthews", 10}}}};
  EXPECT_FALSE(results.Average());
  EXPECT_FALSE(results.AverageOf(majority)) << "of other tasks";
  results.Add(10, {"wnli", {{"accuracy", 56}}});
  EXPECT_FALSE(results.Average());
  EXPECT_TRUE(results.ToJson()["average"].is_null());
  results.Add(10, {"cola", {{"matthews", 40}}});
  EXPECT_EQ(results.Average().value(), 40);
  EXPECT_EQ(results.AverageOf(majority).value(), 10) << "wnli may lack there";
  EXPECT_FALSE(results.AverageOf({{"wnli", {{"accuracy", 56}}}})) << "cola may not";
  EXPECT_EQ(results.ToJson()["tasks"]["wnli"]["accuracy"], 56) << "which has its values";
}

TEST(TaskResults, OfNothingSaySo) {
  EXPECT_EQ(JsonText(TaskResults({"toy"}).ToJson()),
            R"({"tasks":{},"average":null,"step":0,"best_steps":{}})");
}

// A file that is JSON may be damaged all the same.
TEST(TaskResults, OtherJsonIsNotTakenForResults) {
  TaskResults results({"toy"});
  EXPECT_TRUE(TaskResults::IsWellFormed(results.ToJson()));
  results.Add(4, {"toy", {{"accuracy", 50}}});
  EXPECT_TRUE(TaskResults::IsWellFormed(results.ToJson()));
  const std::pair<const char*, Json> damages[] = {
      {"/tasks", 5},          {"/tasks/toy", 5},           {"/tasks/toy/accuracy", "x"},
      {"/best_steps", 5},     {"/average", Json::array()}, {"/majority", 5},
      {"/test/toy", nullptr}, {"/majority_average", "x"},
  };
  for (const auto& [place, value] : damages) {
    Json damaged = results.ToJson();
    damaged[Json::json_pointer(place)] = value;
    EXPECT_FALSE(TaskResults::IsWellFormed(damaged)) << place;
  }
  for (const char* name : {"tasks", "average", "best_steps"}) {
    Json damaged = results.ToJson();
    damaged.erase(name);
    EXPECT_FALSE(TaskResults::IsWellFormed(damaged)) << name;
  }
  EXPECT_FALSE(TaskResults::IsWellFormed(Json::array()));
}

// What is read back from metrics.jsonl are the same doubles.
TEST(TaskResults, ComeBackFromTheLog) {
  const Path path = ScratchDirectory("results") / "metrics.jsonl";
  {
    MetricsLog log(path, {0});
    log.Write(1, {{"loss", 3}});
    log.Write(1, {{"cola/matthews", 100.0 / 3}, {"cola_invalid", 50}});
    log.Write(2, {{"cola/matthews", 20}, {"cola_invalid", 0}});
    log.Write(3, {{"cola/matthews", 90}});
  }
  TaskResults results({"cola"});
  results.AddHistory(path, 3);
  ASSERT_NE(results.Find("cola"), nullptr);
  EXPECT_EQ(results.Find("cola")->step, 1);
  ASSERT_EQ(results.Find("cola")->result.values.size(), 1u);
  EXPECT_EQ(results.Find("cola")->result.values[0].name, "matthews");
  EXPECT_EQ(results.Find("cola")->result.values[0].value, 100.0 / 3);
  EXPECT_EQ(results.ToJson()["step"], 2);
}

// Neither in the run that made it, nor in one that continues.
TEST(TaskResults, AModelThatWasNotSavedIsNotTheBest) {
  TaskResults results({"cola"});
  results.Add(1, {"cola", {{"matthews", 20}}});
  EXPECT_FALSE(AddsBest(&results, 2, {"cola", {{"matthews", 90}}, /*is_saved=*/false}));
  const Path path = ScratchDirectory("results") / "metrics.jsonl";
  {
    MetricsLog log(path, {0});
    log.Write(1, {{MetricKey("cola", "matthews"), 20}});
    log.Write(2, {{MetricKey("cola", "matthews"), 90}, {UnsavedKey("cola"), 1}});
  }
  TaskResults continued({"cola"});
  continued.AddHistory(path, 3);
  EXPECT_EQ(continued.Find("cola")->step, 1);
  EXPECT_EQ(JsonText(continued.ToJson()), JsonText(results.ToJson()));
}

TEST(FirstClassIds, DiagnosesHaveThoseOfTheirOwnBenchmark) {
  const auto ids = [](bool super_glue) {
    ModelConfig model;
    model.set_architecture(ModelConfig::ENCODER_ONLY);
    model.mutable_classifier()->set_classes(2);
    DataConfig data;
    TaskConfig* task = data.add_task();
    if (super_glue) {
      task->mutable_superglue_rte();
    } else {
      task->mutable_rte();
    }
    data.add_task()->mutable_axb();
    return FirstClassIds(model, MakeTasks(data));
  };
  EXPECT_EQ(ids(true), (std::vector<int32_t>{1, 1}));
  try {
    ids(false);
    ADD_FAILURE() << "GLUE's RTE has no diagnoses";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kConfig);
    EXPECT_NE(std::string(error.what()).find("axb has the classes of rte of superglue"),
              std::string::npos)
        << error.what();
  }
}

TEST(BestCheckpoints, OutliveThePruningAndTakeEachOthersPlace) {
  const Path root = ScratchDirectory("results"), checkpoints = root / "checkpoints";
  for (const int step : {1, 2}) {
    CreateDirectories(checkpoints / StepName(step));
    ReplaceFileDurably(checkpoints / StepName(step) / "MANIFEST", std::to_string(step));
  }
  BestCheckpoints best(root / "best", checkpoints);
  best.Keep("cola", 1);
  RemoveAll(checkpoints / StepName(1));
  EXPECT_EQ(ReadWholeFile(best.DirectoryOf("cola") / StepName(1) / "MANIFEST"), "1");
  best.Keep("cola", 2);
  best.Keep("cola", 2);
  const std::vector<CheckpointRef> kept = ListCheckpoints(best.DirectoryOf("cola"));
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].step, 2);
}

// A checkpoint of a run, whose only tensor has this value.
void SaveValue(const Path& checkpoints, int64_t step, float value) {
  const TensorRecord tensor{
      "parameters/x", {DType::kF32, {1}}, std::as_bytes(std::span(&value, 1)).data()};
  SaveCheckpoint(checkpoints, {.step = step, .run_id = "r", .attributes = {}},
                 std::span(&tensor, 1));
}

float ValueIn(const Path& checkpoint) {
  float value = 0;
  Checkpoint(checkpoint).Read("parameters/x", std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

// In the file itself, so that a hard link shows it, too.
void DamageShard(const Path& checkpoint) {
  const Path shard = checkpoint / ShardName(0);
  const int64_t size = static_cast<int64_t>(std::filesystem::file_size(shard));
  File::OpenOwnForWrite(shard).WriteAt(size / 2, std::as_bytes(std::span("damage")));
}

class KeptCheckpoint : public ScratchTest {
 protected:
  void SetUp() override {
    ScratchTest::SetUp();
    SaveValue(Checkpoints(), 4, 1);
    Best().Keep("toy", 4);
    EXPECT_TRUE(IsLinked());
  }

  Path Checkpoints() const { return scratch_ / "checkpoints"; }
  BestCheckpoints Best() const { return {scratch_ / "best", Checkpoints()}; }
  Path Kept() const { return Best().DirectoryOf("toy") / StepName(4); }
  bool IsLinked() const {
    return std::filesystem::equivalent(Checkpoints() / StepName(4) / kManifestName,
                                       Kept() / kManifestName);
  }
  // As on a file system without links.
  void CopyInstead() const {
    RemoveAll(Kept());
    std::filesystem::copy(Checkpoints() / StepName(4), Kept());
  }
};

TEST_F(KeptCheckpoint, GivesWayIfItIsDamaged) {
  DamageShard(Checkpoints() / StepName(4));
  EXPECT_THROW(ValueIn(Kept()), Error);
  // The run sets its own aside, and comes to this step again.
  RenameDurably(Checkpoints() / StepName(4), Checkpoints() / ".bad-step-0000000004");
  SaveValue(Checkpoints(), 4, 1);
  Best().Keep("toy", 4);
  EXPECT_EQ(ValueIn(Kept()), 1);
}

TEST_F(KeptCheckpoint, GivesWayIfItIsOfAnEarlierRun) {
  RemoveAll(Checkpoints());
  SaveValue(Checkpoints(), 4, 2);
  Best().Keep("toy", 4);
  EXPECT_EQ(ValueIn(Kept()), 2);
  EXPECT_EQ(DirectoryNames(Best().DirectoryOf("toy")), std::vector<std::string>{StepName(4)});
}

TEST_F(KeptCheckpoint, StaysIfAnotherCannotTakeItsPlace) {
  EXPECT_THROW(Best().Keep("toy", 8), Error);  // which is not there
  EXPECT_EQ(ValueIn(Kept()), 1);
}

TEST_F(KeptCheckpoint, WhatAKilledProcessLeftGoes) {
  // Process ids end at 2^22 on Linux.
  CreateDirectories(Best().DirectoryOf("toy") / (".tmp-" + StepName(2) + "-99999999"));
  Best().Keep("toy", 4);
  EXPECT_EQ(DirectoryNames(Best().DirectoryOf("toy")), std::vector<std::string>{StepName(4)});
}

TEST_F(KeptCheckpoint, StaysIfItIsASoundCopy) {
  CopyInstead();
  Best().Keep("toy", 4);
  EXPECT_FALSE(IsLinked());
  DamageShard(Kept());
  Best().Keep("toy", 4);
  EXPECT_TRUE(IsLinked());
  EXPECT_EQ(ValueIn(Kept()), 1);
}

}  // namespace
}  // namespace syntra
