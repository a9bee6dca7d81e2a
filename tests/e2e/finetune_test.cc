// SPDX-License-Identifier: Apache-2.0
// `finetune` as users run it: results, predictions and the best checkpoint; stopped and continued;
// with several ranks and seeds; the mistakes that people make.
#include <gmock/gmock.h>

#include <filesystem>

#include "checkpoint/layout.h"
#include "tests/e2e/toy_task.h"

namespace syntra {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

using Finetune = ToyTask;

TEST_F(Finetune, LearnsATask) {
  const Arguments command =
      Command("a", {"train.steps=40", "evaluation.every=10", "model.dropout=0",
                    "model.mixer.attention.dropout=0", "model.cross_attention.dropout=0"});
  const Outcome outcome = Run(command);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("majority class"));
  EXPECT_TRUE(outcome.Says("the optimizer continues after 4 steps")) << outcome.err;
  const Json results = Results("a");
  const double accuracy = results["tasks"]["toy"]["accuracy"];
  EXPECT_GT(accuracy, results["majority"]["toy"]["accuracy"].get<double>());
  EXPECT_NEAR(results["average"].get<double>(),
              (accuracy + results["tasks"]["toy"]["f1"].get<double>()) / 2, 1e-9);
  EXPECT_EQ(results["step"], 40);

  // The predictions are those of the best step, and say the same as the accuracy.
  int right = 0;
  const std::vector<std::string> lines = Split(File("a", "predictions/toy.jsonl"), '\n');
  ASSERT_EQ(lines.size(), 33u);
  for (size_t i = 0; i + 1 < lines.size(); ++i) {
    const Json line = ParseJson(lines[i]);
    right += line["prediction"] == line["target"];
  }
  EXPECT_NEAR(accuracy, 100.0 * right / 32, 1e-9);

  // The best model answered the test split, whose answers the file gives.
  EXPECT_EQ(Split(File("a", "predictions/toy_test.jsonl"), '\n').size(), 11u);
  EXPECT_GT(results["test"]["toy_test"]["accuracy"].get<double>(), 60);

  // The best checkpoint is a whole one.
  const std::vector<CheckpointRef> best = ListCheckpoints(Directory("a") / "best/toy");
  ASSERT_EQ(best.size(), 1u);
  EXPECT_EQ(best[0].step, results["best_steps"]["toy"]);
  const Outcome generated =
      Run({"generate", "--raw", "--checkpoint", best[0].path.string()}, {.input = "ea ga ja\n"});
  EXPECT_EQ(generated.code, 0) << generated.err;

  EXPECT_TRUE(Run(command).Says("the run is done"));
}

// Answers to an official test split are written as the benchmark's server takes them.
TEST_F(Finetune, WritesSubmissions) {
  CreateDirectories(scratch_ / "CoLA");
  const std::string rows = "x\t1\t\taa ba\nx\t0\t*\tba aa\n";
  for (const char* file : {"CoLA/train.tsv", "CoLA/dev.tsv"}) {
    ReplaceFileDurably(scratch_ / file, rows);
  }
  ReplaceFileDurably(scratch_ / "CoLA/test.tsv", "index\tsentence\n0\taa ba\n1\tca da ca da\n");
  const Outcome outcome = Run(Command("a", {"data.task={ cola {} }", "train.steps=1"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<std::string> lines = Split(File("a", "submission/CoLA.tsv"), '\n');
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0], "index\tprediction");
  // In the order of the file, although the longest is answered first.
  EXPECT_EQ(lines[1].substr(0, 2), "0\t");
  EXPECT_FALSE(Results("a").contains("test"));
  EXPECT_TRUE(Exists(Directory("a") / "submission/glue.zip"));
  EXPECT_TRUE(
      outcome.Says("has 1 of the 11 files that gluebenchmark.com takes; a full submission "
                   "also needs SST-2.tsv, "))
      << outcome.err;
}

// Diagnostics, which have no validation split, are answered by the best model of their task.
// All tasks of both configurations on a few rows of every official file, to the archives.
TEST_F(Finetune, TheBenchmarksAreSeenThrough) {
  const Path source = SYNTRA_SOURCE_DIR;
  for (const std::string benchmark : {"glue", "superglue"}) {
    Arguments command =
        Command(benchmark, {"data.directory=" + (source / "tests/tasks/sample").string(),
                            "data.input_length=32", "data.target_length=8",
                            "data.max_bad_fraction=1", "train.steps=1", "train.batch_size=2",
                            "checkpoint.initial_state=FRESH", "model.mixer.attention.dropout=0"});
    command[2] = (source / "configs/finetune" / (benchmark + ".textproto")).string();
    const Outcome outcome = Run(command);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(Results(benchmark)["tasks"].size(), 8u);
    EXPECT_TRUE(Exists(Directory(benchmark) / "submission" / (benchmark + ".zip")));
    // The sample has the test files of some tasks.
    EXPECT_TRUE(outcome.Says("a full submission also needs")) << outcome.err;
    const std::string file = benchmark == "glue" ? "CoLA.tsv" : "WSC.jsonl";
    EXPECT_TRUE(Exists(Directory(benchmark) / "submission" / file));
  }
}

// As where the disk was full when the line was to be written.
TEST_F(Finetune, ALostLineDoesNotCostTheBestModel) {
  ASSERT_EQ(Run(Command("a", {"train.steps=8"})).code, 0);
  Json results = Results("a");
  const Json best_step = results["best_steps"]["toy"];
  results["tasks"]["toy"]["accuracy"] = results["tasks"]["toy"]["f1"] = 101;  // never reached again
  ReplaceFileDurably(Directory("a") / "results.json", JsonText(results));
  std::string kept;
  for (const std::string& line : Split(File("a", "metrics.jsonl"), '\n')) {
    if (!line.empty() && line.find("toy/") == line.npos) kept += line + "\n";
  }
  ReplaceFileDurably(Directory("a") / "metrics.jsonl", kept);
  ASSERT_EQ(Run(Command("a", {"train.steps=12"})).code, 0);
  EXPECT_EQ(Results("a")["best_steps"]["toy"], best_step);
  EXPECT_EQ(Results("a")["tasks"]["toy"]["f1"], 101);
  const std::vector<CheckpointRef> best = ListCheckpoints(Directory("a") / "best/toy");
  ASSERT_EQ(best.size(), 1u);
  EXPECT_EQ(best[0].step, best_step);
}

TEST_F(Finetune, DiagnosticsAreOfTheBestModel) {
  const Json row = {
      {"premise", "aa ba"}, {"hypothesis", "da ea"}, {"label", "entailment"}, {"idx", 0}};
  for (const char* file : {"RTE/train.jsonl", "RTE/val.jsonl", "AX-g/AX-g.jsonl"}) {
    CreateDirectories((scratch_ / file).parent_path());
    ReplaceFileDurably(scratch_ / file, JsonText(row) + "\n");
  }
  const auto run = [&](const char* steps) {
    const Outcome outcome =
        Run(Command("a", {"data.task=[{ superglue_rte {} }, { axg {} }]", steps}));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  };
  run("train.steps=1");
  // These models give no label as an answer, so the last is kept as the best. It stays so, as the
  // log now says that it gave one.
  std::string log = File("a", "metrics.jsonl");
  const std::string accuracy = R"("rte/accuracy":)";
  log.insert(log.rfind(accuracy) + accuracy.size(), "5");
  ReplaceFileDurably(Directory("a") / "metrics.jsonl", log);
  run("train.steps=12");
  ASSERT_EQ(Results("a")["best_steps"]["rte"], 1);
  const auto generated = [&](const Path& checkpoint) {
    const Outcome result = Run({"generate", "--raw", "--checkpoint", checkpoint.string()},
                               {.input = "rte hypothesis: da ea premise: aa ba\n"});
    EXPECT_EQ(result.code, 0) << result.err;
    return result.out;
  };
  const std::string answer =
      ParseJson(Split(File("a", "predictions/axg_test.jsonl"), '\n')[0])["prediction"];
  // Which is no label and ends where that shows.
  ASSERT_NE(answer, "");
  EXPECT_THAT(generated(Directory("a") / "best/rte"), StartsWith(answer));
  EXPECT_THAT(generated(Directory("a")), Not(StartsWith(answer)));
}

// With rank classification the answer is the label that `score` finds most probable, on one rank
// and on two.
TEST_F(Finetune, RanksLabels) {
  const Arguments settings = {"train.steps=4", "evaluation.rank_classification=true"};
  const Outcome outcome = Run(Command("a", settings));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::vector<std::string> lines = Split(File("a", "predictions/toy.jsonl"), '\n');
  lines.pop_back();
  std::string pairs;
  for (const std::string& line : lines) {
    pairs += ParseJson(line)["input"].get<std::string>() + "\tca\tda\n";
  }
  const Outcome scored =
      Run({"score", "--checkpoint", (Directory("a") / "best/toy").string()}, {.input = pairs});
  ASSERT_EQ(scored.code, 0) << scored.err;
  const std::vector<std::string> scores = Split(scored.out, '\n');
  ASSERT_EQ(scores.size(), lines.size() + 1);
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::vector<std::string> of_labels = Split(scores[i], '\t');
    const bool second = std::stod(of_labels.at(1)) > std::stod(of_labels.at(0));
    EXPECT_EQ(ParseJson(lines[i])["prediction"], second ? "da" : "ca") << lines[i];
  }
  for (const Json& line : Metrics("a")) EXPECT_EQ(line.value("toy_invalid", 0), 0);
  if (MpirunPath().empty()) return;
  ASSERT_EQ(Run(Command("two", settings), {.ranks = 2}).code, 0);
  EXPECT_EQ(File("a", "predictions/toy.jsonl"), File("two", "predictions/toy.jsonl"));
  EXPECT_EQ(File("a", "results.json"), File("two", "results.json"));
}

// The best evaluation is found again from what the run has written before it stopped.
TEST_F(Finetune, ContinuesToTheSameResults) {
  ASSERT_EQ(Run(Command("whole")).code, 0);
  const Outcome stopped =
      Run(Command("parts"), {.environment = {"SYNTRA_FAILPOINT=stop_evaluation@8"}});
  ASSERT_EQ(stopped.code, 75) << stopped.err;
  const Outcome continued = Run(Command("parts"));
  ASSERT_EQ(continued.code, 0) << continued.err;
  EXPECT_EQ(File("whole", "results.json"), File("parts", "results.json"));
  EXPECT_EQ(File("whole", "predictions/toy.jsonl"), File("parts", "predictions/toy.jsonl"));
  EXPECT_EQ(Trace(Directory("whole"), 12), Trace(Directory("parts"), 12));
}

TEST_F(Finetune, TheEvaluationAtTheStartCanBeLeftOut) {
  const auto evaluated = [&](const std::string& name) {
    std::vector<int64_t> steps;
    for (const Json& line : Metrics(name)) {
      if (line.contains("toy/accuracy")) steps.push_back(line.at("step"));
    }
    return steps;
  };
  ASSERT_EQ(Run(Command("with")).code, 0);
  EXPECT_EQ(evaluated("with"), (std::vector<int64_t>{0, 4, 8, 12}));
  const Arguments without{"evaluation.at_start=false"};
  // Stopped in the evaluation of a later step, which is made when the run continues.
  const Outcome stopped =
      Run(Command("without", without), {.environment = {"SYNTRA_FAILPOINT=stop_evaluation@4"}});
  ASSERT_EQ(stopped.code, 75) << stopped.err;
  ASSERT_EQ(Run(Command("without", without)).code, 0);
  EXPECT_EQ(evaluated("without"), (std::vector<int64_t>{4, 8, 12}));
}

TEST_F(Finetune, AnEvaluationCanBeOfAPart) {
  const Outcome outcome = Run(Command("a", {"train.steps=1", "evaluation.examples=5"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.Says("over 5 examples")) << outcome.err;
  EXPECT_EQ(std::ranges::count(File("a", "predictions/toy.jsonl"), '\n'), 5);
  EXPECT_EQ(std::ranges::count(File("a", "predictions/toy_test.jsonl"), '\n'), 10);
  // Test splits with answers are part of the table.
  EXPECT_THAT(outcome.out, HasSubstr("toy_test"));
  const Path picture = scratch_ / "metric.svg";
  const Arguments report{"report", Directory("a").string(), "--svg", picture.string(), "--picture"};
  Arguments metric = report, none = report;
  metric.push_back("toy/accuracy");
  none.push_back("toy/bleu");
  ASSERT_EQ(Run(metric).code, 0);
  EXPECT_THAT(ReadWholeFile(picture), HasSubstr("toy/accuracy"));
  EXPECT_TRUE(Run(none).Says("toy/accuracy, toy/f1"));
}

TEST_F(Finetune, TwoRanksAreOne) {
  if (MpirunPath().empty()) GTEST_SKIP() << "mpirun is not installed";
  ASSERT_EQ(Run(Command("one")).code, 0);
  const Outcome two = Run(Command("two"), {.ranks = 2});
  ASSERT_EQ(two.code, 0) << two.err;
  EXPECT_EQ(File("one", "results.json"), File("two", "results.json"));
  EXPECT_EQ(File("one", "predictions/toy.jsonl"), File("two", "predictions/toy.jsonl"));
}

// Without packing: micro-batches of rows of like length add up to the batch, whose padding they
// leave out, and each rank gets short and long ones.
TEST_F(Finetune, MicroBatchesOfLikeLengthAreTheBatch) {
  std::string rows = "text\tlabel\n";
  for (int i = 0; i < 96; ++i) {
    rows += "fa";
    for (int word = 0; word < i * 7 % 25; ++word) rows += word % 2 == 0 ? " ga" : " ja";
    rows += "\tca\n";
  }
  ReplaceFileDurably(scratch_ / "train.tsv", rows);
  const auto train = [&](const std::string& name, const Arguments& more, int ranks = 1) {
    Arguments settings{"data.pack=false", "optimizer.kind=ADAFACTOR",
                       "optimizer.min_factored_size=16", "checkpoint.initial_state=FRESH",
                       "train.batch_size=16"};
    settings.insert(settings.end(), more.begin(), more.end());
    const Outcome outcome = Run(Command(name, settings), {.ranks = ranks});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  };
  const auto slots = [&](const std::string& name) {
    const Json step = Metrics(name).at(1);
    return std::round(step.at("tokens_per_second").get<double>() *
                      step.at("seconds").get<double>());
  };
  train("whole", {"train.reduction=FAST", "train.micro_batch_size=16"});
  train("cut", {"train.micro_batch_size=2"});
  ExpectSameCurve("whole", "cut", 12, 1e-6);
  EXPECT_EQ(slots("whole"), 16 * (32 + 8));
  EXPECT_LT(slots("cut"), 0.8 * slots("whole"));
  if (MpirunPath().empty()) return;
  train("two", {"train.micro_batch_size=2"}, 2);
  EXPECT_EQ(Trace(Directory("cut"), 12), Trace(Directory("two"), 12));
  EXPECT_EQ(slots("cut"), slots("two"));
}

// The gradient is divided by the slots that the configuration gives, padding or not.
TEST_F(Finetune, TrimmedTargetsChangeNoDenominator) {
  const auto norm = [&](const std::string& length) {
    const Outcome outcome =
        Run(Command(length, {"train.steps=1", "data.pack=false", "data.target_length=" + length}));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Metrics(length).at(1).at("grad_norm").get<double>();
  };
  EXPECT_NEAR(norm("16") / norm("8"), 0.5, 1e-6);
}

TEST_F(Finetune, SeedsHaveAMeanAndASpread) {
  const Path abandoned = AbandonedFile(Directory("a") / "results.json");
  const Outcome outcome = Run(Command("a", {"train.steps=4", "train.seed=5"}, {"--seeds", "2"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_FALSE(Exists(abandoned));
  EXPECT_THAT(outcome.out, HasSubstr("mean of 2 seeds"));
  const Json results = Results("a"), first = Results("a/seed-5"), second = Results("a/seed-6");
  const auto accuracy = [](const Json& of) { return of["tasks"]["toy"]["accuracy"].get<double>(); };
  EXPECT_NEAR(accuracy(results), (accuracy(first) + accuracy(second)) / 2, 1e-9);
  EXPECT_NEAR(results["deviations"]["toy"]["accuracy"].get<double>(),
              std::abs(accuracy(first) - accuracy(second)) / std::sqrt(2.0), 1e-9);
  const auto tested = [](const Json& of) { return of["test"]["toy_test"]["f1"].get<double>(); };
  EXPECT_NEAR(tested(results), (tested(first) + tested(second)) / 2, 1e-9);
  EXPECT_NEAR(results["deviations"].at("toy_test").at("f1").get<double>(),
              std::abs(tested(first) - tested(second)) / std::sqrt(2.0), 1e-9);
  // What is lost of a run that is done can be made again.
  const Path lost = Directory("a") / "seed-5/results.json";
  for (const char* damaged : {"", "{"}) {
    std::filesystem::remove(lost);
    if (*damaged) ReplaceFileDurably(lost, damaged);
    const Arguments again = Command("a", {"train.steps=4", "train.seed=5"}, {"--seeds", "2"});
    const Outcome refused = Run(again);
    EXPECT_EQ(refused.code, 5);
    EXPECT_TRUE(refused.Says("its results.json is missing or damaged")) << refused.err;
    std::filesystem::remove(Directory("a") / "seed-5/STATUS");
    EXPECT_EQ(Run(again).out, outcome.out);
    EXPECT_EQ(Results("a"), results);
  }
  // A single run would replace these results.
  const Outcome single = Run(Command("a", {"train.steps=4", "train.seed=5"}));
  EXPECT_EQ(single.code, 2);
  EXPECT_TRUE(single.Says("a holds the runs of several seeds")) << single.err;
  EXPECT_EQ(Results("a"), results);
}

// Runs that were done before, with other settings, say so beside the new one.
TEST_F(Finetune, SeedsOfOtherSettingsAreMarked) {
  ASSERT_EQ(Run(Command("a", {"train.steps=1"}, {"--seeds", "2"})).code, 0);
  const Arguments more = Command("a", {"train.steps=1", "evaluation.examples=5"}, {"--seeds", "3"});
  const Outcome outcome = Run(more);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("mean of 3 seeds (other settings)"));
  EXPECT_THAT(outcome.out, HasSubstr("seed-2 was done before with other settings "
                                     "(evaluation.examples: 0 -> 5)"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("seed-3 was done")));
  EXPECT_EQ(Results("a")["other_settings"].size(), 2u);
  // The data are the same, only fewer of them are read.
  EXPECT_TRUE(outcome.Says("other validation examples (evaluation.examples: 0 -> 5)"))
      << outcome.err;
  EXPECT_FALSE(outcome.Says("the data changed")) << outcome.err;
  // Found before a seed is trained.
  const Outcome refused =
      Run(Command("a", {"train.steps=1", "train.batch_size=8"}, {"--seeds", "4"}));
  EXPECT_EQ(refused.code, 5);
  EXPECT_TRUE(refused.Says("seed-1/checkpoints")) << refused.err;
  EXPECT_FALSE(std::filesystem::exists(Directory("a") / "seed-4"));
}

// Then the last model answers the test split.
TEST_F(Finetune, WithoutAValidationSplitNothingIsEvaluated) {
  const Arguments command =
      Command("a", {"data.task=[{ classification { name: 'toy' train: 'train.tsv' test: 'test.tsv' "
                    "label: ['ca', 'da'] } }]",
                    "train.steps=2"});
  const Outcome outcome = Run(command);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.Says("no task has a validation split, so nothing is evaluated"))
      << outcome.err;
  const Json results = Results("a");
  EXPECT_TRUE(results.at("tasks").empty());
  EXPECT_TRUE(results.at("average").is_null());
  EXPECT_TRUE(results.at("test").contains("toy_test"));
  EXPECT_FALSE(Exists(Directory("a") / "best"));
  const Outcome again = Run(command);
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_TRUE(again.Says("the run is done")) << again.err;
}

TEST_F(Finetune, ATestTableWithoutAllTargetsIsNotJudged) {
  ReplaceFileDurably(scratch_ / "blank.tsv", "text\tlabel\nea ga\t\nfa ga\t\n");
  ReplaceFileDurably(scratch_ / "partly.tsv", "text\tlabel\nea ga\tda\nfa ga\t\n");
  for (const std::string name : {"blank", "partly"}) {
    const Outcome outcome =
        Run(Command(name, {"data.task=[{ text_to_text { name: 'toy' train: 'train.tsv' test: '" +
                               name + ".tsv' input: '{text}' target: '{label}' metric: 'bleu' } }]",
                           "train.steps=1"}));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_FALSE(Results(name).contains("test")) << name;
    EXPECT_EQ(outcome.Says("toy_test: not judged, since only 1 of 2 examples have an answer"),
              name == "partly")
        << outcome.err;
  }
}

// RTE is a task of both benchmarks, and the diagnostics are SuperGLUE's.
TEST_F(Finetune, DiagnosticsAreNotOfGluesTask) {
  const std::string rows = "index\tsentence1\tsentence2\tlabel\n0\taa ba\tda ea\tentailment\n";
  const Json row = {
      {"premise", "aa ba"}, {"hypothesis", "da ea"}, {"label", "entailment"}, {"idx", 0}};
  for (const char* folder : {"RTE", "AX-g"}) CreateDirectories(scratch_ / folder);
  for (const char* file : {"RTE/train.tsv", "RTE/dev.tsv"}) {
    ReplaceFileDurably(scratch_ / file, rows);
  }
  ReplaceFileDurably(scratch_ / "AX-g/AX-g.jsonl", JsonText(row) + "\n");
  const auto run = [&](const char* steps) {
    return Run(Command("a", {"data.task=[{ rte {} }, { axg {} }]", steps}));
  };
  const Outcome first = run("train.steps=1");
  ASSERT_EQ(first.code, 0) << first.err;
  // The first model stays the best, and what is kept of it cannot be read: nobody wants it.
  std::string log = File("a", "metrics.jsonl");
  const std::string accuracy = R"("rte/accuracy":)";
  log.insert(log.find(accuracy) + accuracy.size(), "5");
  ReplaceFileDurably(Directory("a") / "metrics.jsonl", log);
  RemoveAll(Directory("a") / "best/rte");
  CreateDirectories(Directory("a") / "best/rte" / StepName(0));
  const Outcome second = run("train.steps=2");
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_EQ(Results("a")["best_steps"]["rte"], 0);
}

TEST_F(Finetune, ASubmissionSaysWhatItLacks) {
  CreateDirectories(scratch_ / "CoLA");
  for (const char* file : {"CoLA/train.tsv", "CoLA/dev.tsv"}) {
    ReplaceFileDurably(scratch_ / file, "x\t1\t\taa ba\n");
  }
  std::string test = "index\tsentence\n9\n";
  for (int i = 0; i < 9; ++i) test += fmt::format("{}\taa ba\n", i);
  ReplaceFileDurably(scratch_ / "CoLA/test.tsv", test);
  const Outcome outcome = Run(Command("a", {"data.task={ cola {} }", "train.steps=1"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.Says("CoLA.tsv lacks the answers to 1 bad row of its test file"))
      << outcome.err;
}

// Of tasks there is text to show, without a run.
TEST_F(Finetune, ExamplesOfTasksAreShown) {
  const auto inspect = [&](const Arguments& more) {
    Arguments command{"inspect", "data", (scratch_ / "toy.textproto").string(), "--set",
                      "data.directory=" + scratch_.string()};
    command.insert(command.end(), more.begin(), more.end());
    return Run(command);
  };
  const Outcome outcome = inspect({"--examples", "2", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json row = {{"task", "toy"}, {"input", "ea ga ia"}, {"target", "da"}};
  const Json examples = ParseJson(outcome.out).at("examples");
  ASSERT_EQ(examples.size(), 2u);
  EXPECT_EQ(examples[0], row);
  EXPECT_EQ(inspect({"--split", "validation", "--examples", "1"}).out,
            "task:   toy\ninput:  ea ga ia\ntarget: da\n\n");
  const Outcome none = inspect({"--split", "validation", "--set",
                                "data.task=[{ classification { name: 'toy' train: 'train.tsv' "
                                "label: ['ca', 'da'] } }]"});
  EXPECT_EQ(none.code, 2);
  EXPECT_TRUE(none.Says("no task of data.task has a validation split")) << none.err;
}

// Files can be what people want, and no good to learn from.
TEST_F(Finetune, WhatTheTrainingExamplesLackIsSaid) {
  ReplaceFileDurably(scratch_ / "train.tsv", "text\tlabel\nfa ga ja fa ga ja fa ga ja\tca\n");
  const Outcome outcome = Run(Command("a", {"data.input_length=8", "data.target_length=0"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(
      outcome.Says("task \"toy\": no training example has the label da, so the model "
                   "cannot learn it"))
      << outcome.err;
  EXPECT_TRUE(
      outcome.Says("1 training example is longer than data.input_length 8 or "
                   "data.target_length 3 and is cut"))
      << outcome.err;
}

TEST_F(Finetune, MistakesAreNamedBeforeAnything) {
  const auto fails = [&](const Arguments& settings, int code, const std::string& says) {
    const Outcome outcome = Run(Command("a", settings));
    EXPECT_EQ(outcome.code, code) << says;
    EXPECT_TRUE(outcome.Says(says)) << outcome.err;
    EXPECT_FALSE(Exists(Directory("a")));
  };
  fails({"data.directory=/nowhere", "data.task={cola {}}"}, 3, "CoLA/train.tsv");
  fails({"data.task={classification {name: \"x\"}}"}, 2, "neither a train nor a validation file");
  fails({"data.task={classification {name: \"x\" train: \"\"}}"}, 2,
        "\"\": a task's files are named *.tsv");
  const auto tested_by = [](const std::string& file) {
    return "data.task=[{ classification { name: 'x' train: 'train.tsv' test: '" + file +
           "' label: ['ca', 'da'] } }]";
  };
  fails({tested_by("nowhere.tsv")}, 3, "nowhere.tsv");
  ReplaceFileDurably(scratch_ / "body.tsv", "body\nea ga ja\n");
  fails({tested_by("body.tsv")}, 3, "no column \"text\"");
  fails({"data.task=[{ classification { name: 'x' train: 'train.tsv' test: 'test.tsv' label: "
         "['ca', 'da'] } }, { classification { name: 'x_test' validation: 'dev.tsv' label: "
         "['ca', 'da'] } }]"},
        2, "the tasks \"x\" and \"x_test\" would both write predictions/x_test.jsonl");
  Arguments nowhere = Command("a");
  nowhere[4] = "/nowhere";
  const Outcome outcome = Run(nowhere);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(outcome.Says("/nowhere does not exist")) << outcome.err;
}

}  // namespace
}  // namespace syntra
