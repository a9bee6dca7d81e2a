// SPDX-License-Identifier: Apache-2.0
// What a run records of itself.
#include "tests/e2e/recorded.h"

#include <gmock/gmock.h>

namespace syntra {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

TEST_F(Recorded, PhasesOfEachStep) {
  Train("run", {"train.steps=6", "train.micro_batch_size=2"});
  int steps = 0;
  for (const Json& line : Metrics("run")) {
    if (!line.contains("loss")) continue;
    ++steps;
    double sum = 0;
    for (const char* phase : {"data", "forward", "backward", "reduce", "optimizer"}) {
      const double seconds = line.at(std::string(phase) + "_seconds");
      EXPECT_GE(seconds, 0) << phase;
      sum += seconds;
    }
    EXPECT_GT(line.at("forward_seconds"), 0);
    EXPECT_GT(line.at("backward_seconds"), 0);
    EXPECT_GT(line.at("optimizer_seconds"), 0);
    EXPECT_LE(sum, line.at("seconds"));
    EXPECT_FALSE(line.contains("slowest_rank"));
  }
  EXPECT_EQ(steps, 6);
}

// What TensorBoard shows of a run: the content of all its files.
std::string TensorBoardFiles(const Path& run_directory) {
  std::string content;
  for (const Path& file : ListDirectory(run_directory / "tensorboard")) {
    content += ReadWholeFile(file);
  }
  return content;
}

// Each evaluation once, also that of the step at which a run continues, made there or stopped.
TEST_F(Recorded, TensorBoardHasNoEvaluationTwice) {
  Train("run", {"train.steps=5"});
  const Outcome stopped =
      Run(Pretrain("run"), {.environment = {"SYNTRA_FAILPOINT=stop_evaluation@10"}});
  ASSERT_EQ(stopped.code, 75) << stopped.err;
  Train("run");
  const std::string name = "validation_log_perplexity",
                    content = TensorBoardFiles(Directory("run"));
  int count = 0;
  for (size_t at = 0; (at = content.find(name, at)) != content.npos; ++at) ++count;
  EXPECT_EQ(count, 5);  // at 0, 5, 10, 15, 20
}

TEST_F(Recorded, MetricsHaveTheirFields) {
  const Outcome outcome = Run(Pretrain("run", {"train.steps=6"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string events = TensorBoardFiles(Directory("run"));
  // Up in two steps, then down to 0 at the last.
  const std::vector<double> rates = {0, 5e-3, 1e-2, 2e-2 / 3, 1e-2 / 3, 0};
  int64_t step = 0;
  std::string time;
  for (const auto& line : Metrics("run")) {
    // Times of equal form sort as text.
    EXPECT_GE(line.at("time").get<std::string>(), time);
    time = line.at("time");
    for (const auto& [name, value] : line.items()) {
      if (name == "step" || name == "time" || value.is_null()) continue;
      EXPECT_NE(events.find(name), std::string::npos) << name << " is not in TensorBoard's file";
    }
    if (line.contains("validation_log_perplexity")) continue;
    EXPECT_EQ(line.at("step"), ++step);
    for (const char* field : {"loss", "grad_norm", "tokens_per_second", "seconds"}) {
      EXPECT_GT(line.at(field).get<double>(), 0) << field;
    }
    EXPECT_NEAR(line.at("learning_rate").get<double>(), rates.at(step - 1), 1e-9);
    EXPECT_EQ(line.at("skipped"), 0);
  }
  EXPECT_EQ(step, 6);
  const Json run = ParseJson(ReadWholeFile(Directory("run") / "run.json"));
  EXPECT_EQ(run.at("command")[1], "pretrain");
  EXPECT_EQ(run.at("command").back(), "train.steps=6");
}

TEST_F(Recorded, RanksKnowForWhichTheyWait) {
  if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
  Train("run", kShort, {.ranks = 2, .environment = {"SYNTRA_FAILPOINT=slow_rank@1-6:1"}});
  for (const Json& line : Metrics("run")) {
    if (!line.contains("loss")) continue;
    EXPECT_EQ(line.at("slowest_rank"), 1);
    EXPECT_GE(line.at("slowest_rank_seconds"), 0.1);
    EXPECT_LT(line.at("median_rank_seconds"), line.at("slowest_rank_seconds"));  // the mean of both
    // Rank 0 waits for it.
    EXPECT_GT(line.at("reduce_seconds"), 0);
  }
}

// The step that was the last one would not have been evaluated otherwise, and is not again.
TEST_F(Recorded, ALongerRunKeepsTheEvaluationOfItsEarlierEnd) {
  for (const char* steps : {"train.steps=4", "train.steps=6"}) {
    Train("run", {steps, "evaluation.every=3", "evaluation.samples=1"});
  }
  std::vector<int64_t> evaluated, sampled;
  for (const Json& line : Metrics("run")) {
    if (line.contains("validation_log_perplexity")) evaluated.push_back(line.at("step"));
  }
  for (const Json& line : Lines("run", "samples.jsonl")) sampled.push_back(line.at("step"));
  EXPECT_EQ(evaluated, (std::vector<int64_t>{0, 3, 4, 6}));
  EXPECT_EQ(sampled, evaluated);
}

TEST_F(Recorded, WhatHappenedToARun) {
  // A save beside training may end after the evaluation of its step.
  Arguments settings = kShort;
  settings.push_back("checkpoint.asynchronous=false");
  const Outcome outcome = Run(Pretrain("run", settings));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(EventNames("run"), ElementsAre("start", "save", "evaluation", "save", "evaluation",
                                             "save", "evaluation", "done"));
  const std::vector<Json> events = Events("run");
  EXPECT_EQ(events.front().at("ranks"), 1);
  EXPECT_FALSE(events.front().contains("lost_steps"));
  EXPECT_EQ(events.back().at("step"), 6);
  const Json goodput = Report("run").at("goodput");
  EXPECT_GT(goodput.at("share"), 0);
  EXPECT_LT(goodput.at("share"), 1);
  EXPECT_EQ(goodput.at("restarts"), 0);
  double sum = 0;
  for (const auto& [name, seconds] : goodput.at("seconds").items()) sum += seconds.get<double>();
  EXPECT_NEAR(sum, goodput.at("wall_seconds"), 1e-9);
  EXPECT_TRUE(outcome.Says("goodput: ")) << outcome.err;
  EXPECT_TRUE(outcome.Says("steps: ")) << outcome.err;
}

// Three processes: the first one's last two checkpoints are lost and it never said that it ended;
// the second is stopped.
TEST_F(Recorded, RestartsAndLostStepsAreCounted) {
  const Arguments settings{"train.steps=20", "checkpoint.keep=9"};
  const Arguments command = Pretrain("run", settings);
  Train("run", settings);
  for (const int64_t step : {15, 20}) RemoveCheckpoint("run", step);
  std::string events = ReadWholeFile(Directory("run") / "events.jsonl");
  ASSERT_THAT(events, HasSubstr("\"done\""));
  events.resize(events.rfind("{\"step\":20"));
  ReplaceFileDurably(Directory("run") / "events.jsonl", events + "{\"step\":20,\"ti");
  double lost = 0;
  for (const Json& line : Metrics("run")) {
    if (line.contains("loss") && line.at("step") > 10) lost += line.at("seconds").get<double>();
  }

  const Outcome stopped = Run(command, {.environment = {"SYNTRA_FAILPOINT=stop_evaluation@15"}});
  ASSERT_EQ(stopped.code, 75) << stopped.err;
  EXPECT_EQ(Events("run").back().at("event"), "stop");
  const Outcome last = Run(command);
  ASSERT_EQ(last.code, 0) << last.err;
  EXPECT_TRUE(last.Says("; 2 restarts (1 after a failure), 10 steps lost")) << last.err;

  std::vector<Json> starts;
  for (const Json& event : Events("run")) {
    if (event.at("event") == "start") starts.push_back(event);
  }
  ASSERT_EQ(starts.size(), 3u);
  EXPECT_EQ(starts[1].at("step"), 10);
  EXPECT_EQ(starts[1].at("lost_steps"), 10);
  EXPECT_NEAR(starts[1].at("lost_seconds"), lost, 1e-9);
  EXPECT_GE(starts[1].at("idle_seconds"), 0);
  EXPECT_EQ(starts[2].at("lost_steps"), 0);
  const Json goodput = Report("run").at("goodput");
  EXPECT_EQ(goodput.at("restarts"), 2);
  EXPECT_EQ(goodput.at("failures"), 1);
  EXPECT_EQ(goodput.at("lost_steps"), 10);
}

TEST_F(Recorded, SkipsFailedSavesAndErrors) {
  const Outcome outcome =
      Run(Pretrain("run", {"train.steps=20", "train.max_skipped_steps=1", "train.max_rollbacks=0"}),
          {.environment = {"SYNTRA_FAILPOINT=gradient_nan@2-4"}});
  ASSERT_EQ(outcome.code, 6) << outcome.err;
  EXPECT_THAT(EventNames("run"),
              ElementsAre("start", "save", "evaluation", "skip", "skip", "failed"));
  const Json failed = Events("run").back();
  EXPECT_EQ(failed.at("code"), 6);
  EXPECT_EQ(failed.at("step"), 3);
  EXPECT_TRUE(outcome.Says(failed.at("error"))) << failed << outcome.err;
}

// Every line by Prometheus's grammar; each metric has its type, before its only samples.
TEST_F(Recorded, PrometheusReadsTheRun) {
  Train("run", kShort);
  const std::string text = ReadWholeFile(Directory("run") / "metrics.prom");
  std::map<std::string, std::string> types;
  std::map<std::string, double> values;
  std::string current;
  ASSERT_THAT(text, EndsWith("\n"));
  for (const std::string& line : Split(text.substr(0, text.size() - 1), '\n')) {
    const std::vector<std::string> words = Split(line, ' ');
    if (line.starts_with("# HELP ")) continue;
    if (line.starts_with("# TYPE ")) {
      ASSERT_EQ(words.size(), 4u) << line;
      EXPECT_THAT(words[3], testing::AnyOf("gauge", "counter"));
      EXPECT_TRUE(types.emplace(words[2], words[3]).second) << "twice: " << line;
      current = words[2];
      continue;
    }
    ASSERT_EQ(words.size(), 2u) << line;
    const size_t brace = words[0].find('{');
    ASSERT_NE(brace, std::string::npos) << line;
    const std::string name = words[0].substr(0, brace), labels = words[0].substr(brace);
    EXPECT_EQ(name, current);
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string::npos) << name;
    EXPECT_THAT(labels, testing::MatchesRegex(
                            "\\{run=\"run\",run_id=\"[0-9a-f]+\"(,event=\"[a-z_]+\")?\\}"));
    double value = 0;
    ASSERT_TRUE(ParseDouble(words[1], &value)) << line;
    EXPECT_TRUE(values.emplace(name + labels.substr(labels.find('"', 30)), value).second) << line;
  }
  EXPECT_EQ(types.at("syntra_loss"), "gauge");
  EXPECT_EQ(types.at("syntra_events_total"), "counter");
  EXPECT_THAT(text, HasSubstr("syntra_step{"));
  EXPECT_THAT(text, testing::ContainsRegex("syntra_step\\{[^}]*\\} 6\n"));
  EXPECT_THAT(text, testing::ContainsRegex("syntra_target_steps\\{[^}]*\\} 6\n"));
  EXPECT_THAT(text, testing::ContainsRegex("event=\"save\"\\} 3\n"));
  EXPECT_THAT(text, testing::ContainsRegex("event=\"done\"\\} 1\n"));
  EXPECT_THAT(text, HasSubstr("syntra_validation_log_perplexity{"));
}

using Samples = Recorded;

TEST_F(Samples, TheSameExamplesAtEachEvaluation) {
  Train("without", kShort);
  Train("run", kSampled);
  // What is decoded changes no number.
  EXPECT_EQ(Trace(Directory("run"), 6), Trace(Directory("without"), 6));
  EXPECT_FALSE(Exists(Directory("without") / "samples.jsonl"));
  const std::vector<Json> lines = Lines("run", "samples.jsonl");
  ASSERT_EQ(lines.size(), 6u);
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i].at("step"), 3 * (i / 2));
    for (const char* field : {"example", "input", "target"}) {
      EXPECT_EQ(lines[i].at(field), lines[i % 2].at(field));
    }
    EXPECT_THAT(lines[i].at("input"), HasSubstr("<extra_id_0>"));
    EXPECT_THAT(lines[i].at("target"), testing::StartsWith("<extra_id_0> "));
  }
  EXPECT_NE(lines[0].at("example"), lines[1].at("example"));
  // What `generate --samples` shows of the last checkpoint.
  const Outcome generated =
      Run({"generate", "--raw", "--samples", "2", "--checkpoint", Directory("run").string()});
  ASSERT_EQ(generated.code, 0) << generated.err;
  for (const size_t i : {4, 5}) {
    for (const char* field : {"input", "target", "output"}) {
      EXPECT_THAT(generated.out, HasSubstr(lines[i].at(field).get<std::string>() + "\n"));
    }
  }
}

TEST_F(Samples, OfAContinuedRunAndOfTwoRanks) {
  Train("run", kSampled);
  const Arguments command = Pretrain("stopped", kSampled);
  const Outcome stopped = Run(command, {.environment = {"SYNTRA_FAILPOINT=stop_evaluation@3"}});
  ASSERT_EQ(stopped.code, 75) << stopped.err;
  EXPECT_EQ(Lines("stopped", "samples.jsonl").size(), 2u);
  ASSERT_EQ(Run(command).code, 0);
  EXPECT_EQ(SamplesWithoutTimes("stopped"), SamplesWithoutTimes("run"));
  if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
  Arguments exact = kSampled;
  exact.insert(exact.end(), {"train.reduction=EXACT", "train.micro_batch_size=4"});
  Train("one", exact);
  Train("two", exact, {.ranks = 2});
  EXPECT_EQ(SamplesWithoutTimes("two"), SamplesWithoutTimes("one"));
}

}  // namespace
}  // namespace syntra
