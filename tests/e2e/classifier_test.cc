// SPDX-License-Identifier: Apache-2.0
// Encoders with a classification head as users run them: learned from scratch and from the encoder
// of another model, stopped and continued, with two ranks, and what they cannot do.
#include <gmock/gmock.h>

#include <cmath>

#include "tests/e2e/toy_task.h"

namespace syntra {
namespace {

using testing::HasSubstr;

class Classifier : public ToyTask {};

TEST_F(Classifier, LearnsATask) {
  for (const std::string pooling : {"MEAN", "FIRST"}) {
    const std::string name = "run_" + pooling;
    const Outcome outcome = Run(Alone(
        name, {"train.steps=40", "evaluation.every=20", "model.classifier.pooling=" + pooling}));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("majority class"));
    EXPECT_GT(Results(name)["tasks"]["toy"]["accuracy"].get<double>(), 90) << pooling;
    EXPECT_GT(Results(name)["test"]["toy_test"]["accuracy"].get<double>(), 90) << pooling;
    EXPECT_THAT(File(name, "predictions/toy.jsonl"), HasSubstr(R"("prediction":"da")"));
  }
}

// The encoder of a model that was trained by span corruption; the head is new.
TEST_F(Classifier, StartsFromAnEncoderDecoder) {
  const Arguments settings{"model.architecture=ENCODER_ONLY", "model.classifier.classes=2",
                           "data.pack=false", "checkpoint.initial_state=FRESH"};
  ExpectNewHead(Command("run", settings));
}

TEST_F(Classifier, ContinuesToTheSameResults) {
  ASSERT_EQ(Run(Alone("whole")).code, 0);
  const Outcome stopped =
      Run(Alone("parts"), {.environment = {"SYNTRA_FAILPOINT=stop_evaluation@8"}});
  ASSERT_EQ(stopped.code, 75) << stopped.err;
  ASSERT_EQ(Run(Alone("parts")).code, 0);
  EXPECT_EQ(File("whole", "results.json"), File("parts", "results.json"));
  EXPECT_EQ(Trace(Directory("whole"), 12), Trace(Directory("parts"), 12));
}

TEST_F(Classifier, TwoRanksAreOne) {
  if (MpirunPath().empty()) GTEST_SKIP() << "mpirun is not installed";
  ASSERT_EQ(Run(Alone("one")).code, 0);
  const Outcome two = Run(Alone("two"), {.ranks = 2});
  ASSERT_EQ(two.code, 0) << two.err;
  EXPECT_EQ(File("one", "results.json"), File("two", "results.json"));
  EXPECT_EQ(Trace(Directory("one"), 12), Trace(Directory("two"), 12));
}

// Targets are classes there, not tokens.
TEST_F(Classifier, IsTimed) {
  Arguments command = Alone("run");
  command[0] = "bench";
  std::erase(command, "--from-scratch");
  command.insert(command.end(), {"--steps", "1"});
  const Outcome outcome = Run(command);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

// Each line gets the answer that the same text has among the run's predictions.
TEST_F(Classifier, LabelsLines) {
  ASSERT_EQ(Run(Alone("run", {"train.steps=8"})).code, 0);
  std::string lines, labels;
  for (const std::string& line : Split(File("run", "predictions/toy_test.jsonl"), '\n')) {
    if (line.empty()) continue;
    const Json prediction = ParseJson(line);
    lines += prediction["input"].get<std::string>() + "\n";
    labels += prediction["prediction"].get<std::string>() + "\n";
  }
  const std::string best = (Directory("run") / "best" / "toy").string();
  const Outcome outcome = Run({"generate", "--checkpoint", best}, {.input = lines});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, labels);
  EXPECT_FALSE(outcome.Says("more tokens than the model reads")) << outcome.err;
  if (MpirunPath().empty()) return;
  EXPECT_EQ(Run({"generate", "--checkpoint", best}, {.ranks = 2, .input = lines}).out, labels);
}

TEST_F(Classifier, GivesTheProbabilitiesOfLabels) {
  ASSERT_EQ(Run(Alone("run", {"train.steps=4"})).code, 0);
  std::string too_long = "ea";
  for (int i = 0; i < 40; ++i) too_long += " ga";
  const Outcome outcome = Run({"generate", "--json", "--checkpoint", Directory("run").string()},
                              {.input = "ea ga ja\n" + too_long + "\n"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.Says("1 line has more tokens than the model reads")) << outcome.err;
  const std::vector<std::string> answers = Split(outcome.out, '\n');
  ASSERT_EQ(answers.size(), 3u);
  const Json answer = ParseJson(answers[0]);
  EXPECT_EQ(answer["input"], "ea ga ja");
  const double ca = std::exp(answer["log_probabilities"]["ca"].get<double>());
  const double da = std::exp(answer["log_probabilities"]["da"].get<double>());
  EXPECT_NEAR(ca + da, 1, 1e-5);
  EXPECT_EQ(answer["label"], ca >= da ? "ca" : "da");
}

// Lines give the fields of the task's input, in its order.
TEST_F(Classifier, LinesMayHaveSeveralFields) {
  ASSERT_EQ(Run(Alone("run", {"train.steps=4"})).code, 0);
  const Arguments generate{"generate",
                           "--json",
                           "--checkpoint",
                           Directory("run").string(),
                           "--set",
                           R"(data.task={classification {name: "pairs" train: "train.tsv"
                           input: "{a} {b} {a}" label: ["ca", "da"]}})"};
  const Outcome outcome = Run(generate, {.input = "ea\tga\nea ga\n"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_TRUE(
      outcome.Says("error: line 2 of the input has 1 field, but the task's input has 2: a, b"))
      << outcome.err;
  const std::vector<std::string> answers = Split(outcome.out, '\n');
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(ParseJson(answers[0])["input"], "ea\tga");
  EXPECT_TRUE(ParseJson(answers[0]).contains("label"));
  EXPECT_TRUE(ParseJson(answers[1]).contains("error"));
}

TEST_F(Classifier, LabelsAreThoseOfTheTaskThatIsNamed) {
  const auto task = [](const std::string& name, const std::string& labels) {
    return fmt::format(
        "task {{classification {{name: '{}' train: 'train.tsv' validation: 'dev.tsv' "
        "input: '{{text}}' label: {} label_value: ['ca', 'da']}}}} ",
        name, labels);
  };
  const std::string tasks = task("one", R"(["ca", "da"])") + task("two", R"(["f\nf", "e\ne"])");
  ASSERT_EQ(
      Run(Alone("run", {"data {" + tasks + "}", "model.classifier.classes=4", "train.steps=4"}))
          .code,
      0);
  const Arguments generate{"generate", "--checkpoint", Directory("run").string()};
  const auto run = [&](const Arguments& more) {
    Arguments all = generate;
    all.insert(all.end(), more.begin(), more.end());
    return Run(all, {.input = "ea ga ja\n"});
  };
  const Outcome unclear = run({});
  EXPECT_EQ(unclear.code, 2);
  EXPECT_TRUE(unclear.Says("several tasks; choose one by --task: one, two")) << unclear.err;
  EXPECT_TRUE(run({"--task", "three"}).Says("no task \"three\"; choose one by --task"));
  const Outcome named = run({"--task", "two"});
  EXPECT_EQ(named.code, 0) << named.err;
  // An answer is a line, whatever is in it.
  EXPECT_TRUE(named.out == "f f\n" || named.out == "e e\n") << named.out;
  EXPECT_TRUE(named.Says("1 answer has line breaks, which are printed as spaces")) << named.err;
  const Outcome raw = run({"--task", "two", "--raw"});
  EXPECT_EQ(raw.code, 2);
  EXPECT_TRUE(raw.Says("remove --raw")) << raw.err;
}

TEST_F(Classifier, WritesNoText) {
  ASSERT_EQ(Run(Alone("run", {"train.steps=4"})).code, 0);
  const Outcome refused =
      Run({"score", "--checkpoint", Directory("run").string()}, {.input = "ea ga ja\tda\n"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(refused.Says("predicts classes, not text; syntra generate gives each line its class"))
      << refused.err;
  const Arguments convert{"convert",
                          "--input",
                          Directory("run").string(),
                          "--output",
                          (scratch_ / "exported").string(),
                          "--to",
                          "safetensors"};
  EXPECT_EQ(Run(convert).code, 0);
}

TEST_F(Classifier, MistakesAreExplained) {
  const auto fails = [&](const Arguments& settings, const std::string& says) {
    const Outcome outcome = Run(Alone("run", settings));
    EXPECT_EQ(outcome.code, 2) << says;
    EXPECT_TRUE(outcome.Says(says)) << outcome.err;
    EXPECT_FALSE(HasCheckpoint("run", 0));
  };
  fails({"model.classifier.classes=3"},
        "model.classifier.classes is 3, but the tasks have 2 labels; set model.classifier.classes: "
        "2");
  fails({"data.pack=true"},
        "gives each row one class, so rows cannot be packed; set data.pack: false");
  fails({"model.decoder_layers=2"},
        "model.decoder_layers means nothing with model.architecture ENCODER_ONLY; leave it out");
  const Outcome corpus =
      Run(Pretrain("corpus", {"model {architecture: ENCODER_ONLY}", "model {encoder_layers: 2}"}));
  EXPECT_EQ(corpus.code, 2);
  EXPECT_TRUE(corpus.Says("learns no text, only tasks")) << corpus.err;
}

}  // namespace
}  // namespace syntra
