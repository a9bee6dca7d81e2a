// SPDX-License-Identifier: Apache-2.0
// Encoders that learn masked tokens, as users run them: they learn, continue, spread over ranks,
// and classifiers start from them; and what they cannot do.
#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "tests/e2e/toy_task.h"

namespace syntra {
namespace {

using testing::HasSubstr;

constexpr int kPairs = 20;

class MaskedLmRun : public ToyTask {
 protected:
  void SetUp() override {
    ToyTask::SetUp();
    WriteConfig(R"(
  architecture: ENCODER_MASKED_LM
  encoder_layers: 2
  mixer { attention { heads: 2 head_size: 16 } }
)",
                "objective: MASKED_LM");
    WritePairs(training_, 1, 200);
    WritePairs(validation_, 2, 20);
  }

  // Documents of pairs: the second word of each follows from the first, and the first is random.
  static void WritePairs(const Path& path, int seed, int documents) {
    std::mt19937 random(seed);
    const auto word = [](uint32_t k) {
      return fmt::format("{}{}", static_cast<char>('a' + k % 26), static_cast<char>('a' + k / 26));
    };
    std::string lines;
    for (int i = 0; i < documents; ++i) {
      lines += "{\"text\": \"";
      for (int j = 0; j < 12; ++j) {
        const uint32_t pair = static_cast<uint32_t>(random() % kPairs);
        lines += fmt::format("{}{} {}", j > 0 ? " " : "", word(2 * pair), word(2 * pair + 1));
      }
      lines += "\"}\n";
    }
    ReplaceFileDurably(path, lines);
  }

  // `finetune` from the run `masked`.
  Arguments Finetune(const std::string& name, const Arguments& settings) const {
    Arguments command = Command(name, settings);
    command[4] = Directory("masked").string();
    return command;
  }
};

const Arguments kExact{"checkpoint.every=10", "model.dropout=0.1", "train.reduction=EXACT",
                       "train.micro_batch_size=2"};

TEST_F(MaskedLmRun, LearnsWhatTheUnigramModelCannotKnow) {
  Train("run", {"train.steps=800", "evaluation.every=0", "checkpoint.every=0"});
  // Of two words one gives the other away, unless it is masked, too.
  const double unigram = std::log(2 * kPairs);
  const auto metrics = Metrics("run");
  EXPECT_GT(metrics[1].at("loss").get<double>(), 0.9 * unigram);
  const double validation = metrics.back().at("validation_log_perplexity");
  EXPECT_LT(validation, 0.5 * unigram);
  const Outcome evaluated = Run({"eval", "--checkpoint", Directory("run").string()});
  EXPECT_THAT(evaluated.out, HasSubstr(fmt::format("{:.4f}", validation)));
}

TEST_F(MaskedLmRun, ContinuesToTheSameBits) {
  Train("straight", kExact);
  const Outcome stopped =
      Run(Pretrain("broken", kExact), {.environment = {"SYNTRA_FAILPOINT=stop_evaluation@10"}});
  ASSERT_EQ(stopped.code, 75) << stopped.err;
  Train("broken", kExact);
  EXPECT_EQ(Trace(Directory("broken"), 20), Trace(Directory("straight"), 20));
}

TEST_F(MaskedLmRun, TwoRanksAreOne) {
  if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
  Train("one", kExact);
  Train("two", kExact, {.ranks = 2});
  EXPECT_EQ(Trace(Directory("one"), 20), Trace(Directory("two"), 20));
}

TEST_F(MaskedLmRun, AClassifierStartsFromIt) {
  Train("masked", {"evaluation.every=0"});
  const Arguments classifier{"model.architecture=ENCODER_ONLY", "model.classifier.classes=2",
                             "data.pack=false", "checkpoint.initial_state=FRESH", "train.steps=40"};
  ExpectNewHead(Finetune("run", classifier));
  EXPECT_GT(Results("run")["tasks"]["toy"]["accuracy"].get<double>(), 90);
}

TEST_F(MaskedLmRun, MistakesAreExplained) {
  Train("masked", {"train.steps=4", "evaluation.every=0"});
  const auto fails = [&](const Arguments& command, const std::string& says) {
    const Outcome outcome = Run(command, {.input = "aa ba\tca\n"});
    EXPECT_EQ(outcome.code, 2) << says;
    EXPECT_TRUE(outcome.Says(says)) << outcome.err;
  };
  fails(Finetune("run", {}),
        "model.architecture ENCODER_MASKED_LM learns no tasks; set "
        "model.architecture: ENCODER_ONLY and model.classifier");
  for (const char* command : {"generate", "score"}) {
    fails({command, "--checkpoint", Directory("masked").string()},
          "predicts masked tokens and writes no text; start a model with a decoder or a classifier "
          "from it (checkpoint.initial)");
  }
  fails(Pretrain("run", {"data.objective=SPAN_CORRUPTION"}), "set data.objective: MASKED_LM");
  fails(Pretrain("run", {"model.architecture=ENCODER_ONLY"}), "learns no text, only tasks");
  const Outcome data = Run({"inspect", "data", config_.string(), "--set",
                            "train.directory=" + Directory("other").string()});
  EXPECT_THAT(data.out, HasSubstr("<extra_id_0>")) << data.err;
}

}  // namespace
}  // namespace syntra
