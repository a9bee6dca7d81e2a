// SPDX-License-Identifier: Apache-2.0
// A small pretraining run in a scratch directory: a generated corpus and tokenizer of a hundred
// pieces, a model of 2 + 2 layers of width 32; and what such runs leave behind, in a form that can
// be compared.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "tests/e2e/program.h"

namespace syntra {

using Arguments = std::vector<std::string>;

class TinyRun : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // `pretrain` in the run directory `name` with these settings (FIELD=VALUE).
  Arguments Pretrain(const std::string& name, const Arguments& settings = {}) const;
  Outcome Run(const Arguments& arguments, const StartOptions& options = {}) const {
    return RunProgram(scratch_, arguments, options);
  }
  // Runs it to its end and expects exit code 0.
  void Train(const std::string& name, const Arguments& settings = {},
             const StartOptions& options = {}) const;

  Path Directory(const std::string& name) const { return scratch_ / name; }
  // The lines of metrics.jsonl.
  std::vector<Json> Metrics(const std::string& name) const;
  // Of the newest checkpoint.
  int64_t NewestStep(const std::string& name) const;
  int64_t LastLoggedStep(const std::string& name) const;
  bool HasCheckpoint(const std::string& name, int64_t step) const {
    return std::filesystem::exists(CheckpointPath(name, step) / "MANIFEST");
  }
  Path CheckpointPath(const std::string& name, int64_t step) const;
  // The losses and gradient norms of the first `steps` steps agree within `tolerance`.
  void ExpectSameCurve(const std::string& a, const std::string& b, int64_t steps,
                       double tolerance) const;
  // The parameters at `step` agree within `tolerance` of the largest of each tensor.
  void ExpectSameParameters(const std::string& a, const std::string& b, int64_t step,
                            double tolerance) const;
  // One byte of a shard is changed.
  void Damage(const Path& checkpoint) const;

  Path scratch_, config_, tokenizer_, training_, validation_;
};

// What has to be equal in runs that are equal to the bit, as text: each metrics line without its
// times, each file of the last checkpoint that holds tensors by its digest.
std::string Trace(const Path& run_directory, int64_t step);

// Every metrics line without its times.
std::string MetricsTrace(const Path& run_directory);

// A unigram model whose pieces are the special ones, in this order, and whole words.
void WriteSentencePieceModel(const Path& path, int words,
                             const std::vector<std::string>& special = {"<pad>", "</s>", "<unk>"});

}  // namespace syntra
