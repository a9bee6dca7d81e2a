// SPDX-License-Identifier: Apache-2.0
// Encoders with a classification head as users run them: learned from scratch and from the encoder
// of another model, stopped and continued, with two ranks, and what they cannot do.
#include <gmock/gmock.h>

#include "tests/e2e/toy_task.h"

namespace syntra {
namespace {

using testing::HasSubstr;

class Classifier : public ToyTask {
 protected:
  // From scratch.
  Arguments Alone(const std::string& name, const Arguments& settings = {}) const {
    Arguments all{
        "model {architecture: ENCODER_ONLY width: 32 encoder_layers: 2 vocabulary_size: "
        "128 feed_forward {width: 64} mixer {attention {heads: 2 head_size: 16}} "
        "classifier {classes: 2}}",
        "data.tokenizer=" + tokenizer_.string(), "data.extra_ids=20", "data.pack=false"};
    all.insert(all.end(), settings.begin(), settings.end());
    Arguments command = Command(name, all, {"--from-scratch"});
    command.erase(command.begin() + 3, command.begin() + 5);  // --init-from
    return command;
  }
};

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

TEST_F(Classifier, WritesNoText) {
  ASSERT_EQ(Run(Alone("run", {"train.steps=4"})).code, 0);
  const StartOptions line{.input = "ea ga ja\tda\n"};
  for (const char* command : {"generate", "score"}) {
    const Outcome refused = Run({command, "--checkpoint", Directory("run").string()}, line);
    EXPECT_EQ(refused.code, 2) << command;
    EXPECT_TRUE(refused.Says("predicts classes, not text")) << refused.err;
  }
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
