// SPDX-License-Identifier: Apache-2.0
// A small pretraining run in a scratch directory: a generated corpus, a tokenizer of a hundred
// pieces, and a model of 2 + 2 layers of width 32. Also functions that compare the results of such
// runs.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "tests/base/scratch.h"
#include "tests/e2e/program.h"

namespace syntra {

using Arguments = std::vector<std::string>;

// What the runs in `folder` read.
struct TinyFiles {
  explicit TinyFiles(const Path& folder);  // writes them
  // Writes the configuration with these fields of `model` and `data`, beside those that all tiny
  // models have.
  void WriteConfig(const std::string& model, const std::string& data = "") const;
  // The command line of `pretrain` in this run directory with these settings (FIELD=VALUE).
  Arguments Pretrain(const Path& directory, const Arguments& settings = {}) const;

  Path config, tokenizer, training, validation;
};

// The step of the newest checkpoint, as far as its name says so, and of the last line of metrics;
// -1: none.
int64_t NewestStep(const Path& run_directory);
int64_t LastLoggedStep(const Path& run_directory);

class TinyRun : public ScratchTest {
 protected:
  void SetUp() override;

  void WriteConfig(const std::string& model, const std::string& data = "") const {
    files_->WriteConfig(model, data);
  }
  // The command line of `pretrain` in the run directory `name` with these settings (FIELD=VALUE).
  Arguments Pretrain(const std::string& name, const Arguments& settings = {}) const;
  Outcome Run(const Arguments& arguments, const StartOptions& options = {}) const {
    return RunProgram(scratch_, arguments, options);
  }
  // Runs that command to its end and expects exit code 0.
  void Train(const std::string& name, const Arguments& settings = {},
             const StartOptions& options = {}) const;

  Path Directory(const std::string& name) const { return scratch_ / name; }
  // The lines of metrics.jsonl.
  std::vector<Json> Metrics(const std::string& name) const;
  int64_t NewestStep(const std::string& name) const { return syntra::NewestStep(Directory(name)); }
  int64_t LastLoggedStep(const std::string& name) const {
    return syntra::LastLoggedStep(Directory(name));
  }
  bool HasCheckpoint(const std::string& name, int64_t step) const {
    return std::filesystem::exists(CheckpointPath(name, step) / "MANIFEST");
  }
  Path CheckpointPath(const std::string& name, int64_t step) const;
  // Expects that the losses and gradient norms of the first `steps` steps agree within `tolerance`.
  void ExpectSameCurve(const std::string& a, const std::string& b, int64_t steps,
                       double tolerance) const;
  // Expects that the parameters at `step` agree within `tolerance` times the largest of each
  // tensor.
  void ExpectSameParameters(const std::string& a, const std::string& b, int64_t step,
                            double tolerance) const;
  // Runs the program to its end under strace, expects exit code 0, and returns how often it opened
  // the file.
  int TimesOpened(const Path& path, const Arguments& arguments) const;
  // Makes what a process left beside `path` that was killed while it wrote that, hours ago.
  Path AbandonedFile(const Path& path) const;
  // Changes one byte of a shard.
  void Damage(const Path& checkpoint) const;
  // As a person could: gives an attribute of a checkpoint another text.
  void SetAttribute(const std::string& name, int64_t step, const std::string& attribute,
                    const std::string& text) const;

  std::optional<TinyFiles> files_;
  Path config_, tokenizer_, training_, validation_;
};

// A text that is equal for bitwise equal runs: the two below.
std::string Trace(const Path& run_directory, int64_t step);

// Every metrics line without its times.
std::string MetricsTrace(const Path& run_directory);

// The digest of each tensor file of the checkpoint at `step`.
std::string CheckpointTrace(const Path& run_directory, int64_t step);

// Writes a unigram model whose pieces are the special ones, in this order, then whole words.
void WriteSentencePieceModel(const Path& path, int words,
                             const std::vector<std::string>& special = {"<pad>", "</s>", "<unk>"});

}  // namespace syntra
