// SPDX-License-Identifier: Apache-2.0
// A task that small models learn in some steps, and runs of `finetune` on it.
#pragma once

#include "base/text.h"
#include "tests/e2e/tiny_run.h"

namespace syntra {

// A sentence of three words; its class is the first word's.
class ToyTask : public TinyRun {
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

  // Expects that this command of a classifier starts from a model without a head, but only if what
  // is missing there may be initialised.
  void ExpectNewHead(Arguments command) const {
    const Outcome refused = Run(command);
    EXPECT_EQ(refused.code, 5);
    EXPECT_TRUE(refused.Says("missing there (1): classifier")) << refused.err;
    command.insert(command.end(), {"--set", "checkpoint.initial_missing=INITIALIZE"});
    const Outcome outcome = Run(command);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_TRUE(outcome.Says("starting from the parameters of")) << outcome.err;
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

  // Of a classifier that is trained from scratch.
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

  std::string File(const std::string& name, const std::string& file) const {
    return ReadWholeFile(Directory(name) / file);
  }
  Json Results(const std::string& name) const { return ParseJson(File(name, "results.json")); }
};

}  // namespace syntra
