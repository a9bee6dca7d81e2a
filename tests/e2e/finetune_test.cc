// SPDX-License-Identifier: Apache-2.0
// `finetune` as users run it: results, predictions and the best checkpoint; stopped and continued;
// with several ranks and seeds; the mistakes that people make.
#include <gmock/gmock.h>

#include "base/text.h"
#include "checkpoint/layout.h"
#include "tests/e2e/tiny_run.h"

namespace syntra {
namespace {

using testing::HasSubstr;

// A sentence of three words; its class is the first word's.
class Finetune : public TinyRun {
 protected:
  void SetUp() override {
    TinyRun::SetUp();
    WriteExamples("train", 96);
    WriteExamples("dev", 32);
    WriteExamples("test", 10);
    ReplaceFileDurably(scratch_ / "toy.textproto", R"(
data {
  task {
    classification {
      name: "toy"
      train: "train.tsv"
      validation: "dev.tsv"
      test: "test.tsv"
      input: "{text}"
      label: "ca"
      label: "da"
      metric: "accuracy"
      metric: "f1"
    }
  }
  input_length: 32
  target_length: 8
}
optimizer { kind: ADAMW schedule { kind: CONSTANT rate: 0.01 warmup_steps: 0 } }
train { steps: 12 batch_size: 4 threads: 1 log_every: 1000 reduction: EXACT micro_batch_size: 1 }
evaluation { every: 4 }
checkpoint { every: 4 initial_state: CONTINUED }
)");
    Train("base", {"train.steps=4", "evaluation.every=0"});
  }

  void WriteExamples(const std::string& name, int count) {
    std::string rows = "text\tlabel\n";
    for (int i = 0; i < count; ++i) {
      const bool second = i % 3 == 0;
      rows += fmt::format("{} {} {}\t{}\n", second ? "ea" : "fa", i % 2 == 0 ? "ga" : "ha",
                          i % 5 == 0 ? "ia" : "ja", second ? "da" : "ca");
    }
    ReplaceFileDurably(scratch_ / (name + ".tsv"), rows);
  }

  Arguments Command(const std::string& name, const Arguments& settings = {},
                    const Arguments& more = {}) const {
    Arguments arguments{"finetune",
                        "--config",
                        (scratch_ / "toy.textproto").string(),
                        "--init-from",
                        Directory("base").string(),
                        "--set",
                        "data.directory=" + scratch_.string(),
                        "--set",
                        "train.directory=" + Directory(name).string()};
    for (const std::string& setting : settings) {
      arguments.insert(arguments.end(), {"--set", setting});
    }
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  std::string File(const std::string& name, const std::string& file) const {
    return ReadWholeFile(Directory(name) / file);
  }
  Json Results(const std::string& name) const { return ParseJson(File(name, "results.json")); }
};

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
  ReplaceFileDurably(scratch_ / "CoLA/test.tsv", "index\tsentence\n0\taa ba\n1\tca da\n");
  const Outcome outcome =
      Run(Command("a", {"data.task=[{ cola {} }, { axg {} }]", "train.steps=1"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<std::string> lines = Split(File("a", "submission/CoLA.tsv"), '\n');
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0], "index\tprediction");
  EXPECT_EQ(lines[1].substr(0, 2), "0\t");
  EXPECT_FALSE(Results("a").contains("test"));
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

TEST_F(Finetune, TwoRanksAreOne) {
  if (MpirunPath().empty()) GTEST_SKIP() << "mpirun is not installed";
  ASSERT_EQ(Run(Command("one")).code, 0);
  const Outcome two = Run(Command("two"), {.ranks = 2});
  ASSERT_EQ(two.code, 0) << two.err;
  EXPECT_EQ(File("one", "results.json"), File("two", "results.json"));
  EXPECT_EQ(File("one", "predictions/toy.jsonl"), File("two", "predictions/toy.jsonl"));
}

TEST_F(Finetune, SeedsHaveAMeanAndASpread) {
  const Outcome outcome = Run(Command("a", {"train.steps=4", "train.seed=5"}, {"--seeds", "2"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("mean of 2 seeds"));
  const Json results = Results("a"), first = Results("a/seed-5"), second = Results("a/seed-6");
  const auto accuracy = [](const Json& of) { return of["tasks"]["toy"]["accuracy"].get<double>(); };
  EXPECT_NEAR(accuracy(results), (accuracy(first) + accuracy(second)) / 2, 1e-9);
  EXPECT_NEAR(results["deviations"]["toy"]["accuracy"].get<double>(),
              std::abs(accuracy(first) - accuracy(second)) / std::sqrt(2.0), 1e-9);
}

TEST_F(Finetune, FromScratchIsAskedFor) {
  Arguments command = Command("a", {"train.steps=1"});
  command.erase(command.begin() + 3, command.begin() + 5);  // --init-from
  const Outcome refused = Run(command);
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(refused.Says("--init-from")) << refused.err;
  command.push_back("--from-scratch");
  for (const std::string& setting :
       {std::string("model {width: 32 encoder_layers: 1 decoder_layers: 1 vocabulary_size: 128}"),
        "data.tokenizer=" + tokenizer_.string(), std::string("data.extra_ids=20")}) {
    command.insert(command.end(), {"--set", setting});
  }
  const Outcome scratch = Run(command);
  EXPECT_EQ(scratch.code, 0) << scratch.err;
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
  fails({"checkpoint.initial=/nowhere"}, 5, "/nowhere does not exist");
}

}  // namespace
}  // namespace syntra
