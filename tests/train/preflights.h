// SPDX-License-Identifier: Apache-2.0
// A configuration and its corpus, whose checks before a run are tested. No model is built, and the
// corpora have only a few lines.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "checkpoint/save.h"
#include "config/config.h"
#include "config/print.h"
#include "data/training_data.h"
#include "tests/base/scratch.h"
#include "train/preflight.h"
#include "train/snapshot.h"

namespace syntra {

inline constexpr char kTokenizer[] = SYNTRA_SOURCE_DIR "/data/sample/spiece.model";

class Preflights : public ScratchTest {
 protected:
  void SetUp() override {
    ScratchTest::SetUp();
    Write("corpus/a.jsonl", "{\"text\": \"one way\"}\n{\"text\": \"another way\"}\n");
    Set("train.directory", '"' + Run().string() + '"');
    Set("data.train", '"' + (scratch_ / "corpus/a.jsonl").string() + '"');
    Set("data.tokenizer", '"' + std::string(kTokenizer) + '"');
  }
  Path Run() const { return scratch_ / "run"; }
  void Write(const std::string& name, const std::string& text) const {
    CreateDirectories((scratch_ / name).parent_path());
    ReplaceFileDurably(scratch_ / name, text);
  }
  void Set(const std::string& field, const std::string& value) {
    overrides_.push_back(field + "=" + value);
  }
  Config Now() const {
    return ParseConfig(
        "x",
        "model { width: 32 encoder_layers: 1 decoder_layers: 1 } data { input_length: 32 } "
        "train { steps: 100 batch_size: 8 device: CPU } "
        "optimizer { schedule { kind: LINEAR rate: 0.01 warmup_steps: 0 } } "
        "checkpoint { every: 50 }",
        overrides_, kForModel);
  }
  std::vector<Finding> All(int ranks = 1) const {
    return Preflight(Now(), {.ranks = ranks, .ranks_on_host = ranks}).findings;
  }
  Finding Of(const std::string& subject) const {
    for (const Finding& finding : All()) {
      if (finding.subject == subject) return finding;
    }
    ADD_FAILURE() << "no check of " << subject;
    return {};
  }
  void ExpectFailure(const std::string& subject, ExitCode code, const std::string& part) const {
    const Finding finding = Of(subject);
    EXPECT_EQ(finding.state, Finding::State::kFailed) << finding.detail;
    EXPECT_EQ(finding.code, code) << finding.detail;
    EXPECT_NE(finding.detail.find(part), std::string::npos) << finding.detail;
  }
  void ExpectWarning(const std::string& subject, const std::string& part) const {
    const Finding finding = Of(subject);
    EXPECT_EQ(finding.state, Finding::State::kWarning) << finding.detail;
    EXPECT_NE(finding.detail.find(part), std::string::npos) << finding.detail;
  }

  // A checkpoint of a run with the configuration of now, which learned from these data.
  void Save(int64_t step, const std::string& data_digest = "none") const {
    const Tokenizer tokenizer(kTokenizer, Now().data().extra_ids());
    const float value = 1;
    const TensorRecord tensor{
        "parameters/x", {DType::kF32, {1}}, std::as_bytes(std::span(&value, 1)).data()};
    SaveCheckpoint(Run() / "checkpoints",
                   {.step = step,
                    .run_id = "r",
                    .attributes = {{"config", MinimalConfigText(Now())},
                                   {kTokenizerAttribute, ToHex(tokenizer.digest())},
                                   {kDataAttribute, data_digest}}},
                   std::span(&tensor, 1), {.keep = 2});
  }
  CorpusIndex Prepare() const {
    const Tokenizer tokenizer(kTokenizer, Now().data().extra_ids());
    return PrepareCorpus(Preparations(Now().data(), Run() / "prepared").at(0), tokenizer).index;
  }

  std::vector<std::string> overrides_;
};

}  // namespace syntra
