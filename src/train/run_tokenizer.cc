// SPDX-License-Identifier: Apache-2.0
#include "train/run_tokenizer.h"

#include <optional>

#include "base/error.h"
#include "checkpoint/layout.h"
#include "checkpoint/recover.h"
#include "checkpoint/verify.h"
#include "train/run_directory.h"

namespace syntra {
namespace {

// The tokenizer of the newest checkpoint in which it is not damaged. All checkpoints of a run hold
// the same one, so their other files are not looked at. nullopt if the newest checkpoint that can
// be read has none.
std::optional<Tokenizer> TokenizerIn(const std::vector<Path>& newest_first, int32_t extra_ids) {
  std::string reasons;
  for (const Path& checkpoint : newest_first) {
    try {
      const std::optional<std::string> model = ReadCheckpointFile(checkpoint, kTokenizerFile);
      if (!model) return std::nullopt;
      return Tokenizer(checkpoint / kTokenizerFile, *model, extra_ids);
    } catch (const UnsupportedFormat&) {
      throw;
    } catch (const Error& error) {
      if (error.code() != ExitCode::kCheckpoint) throw;
      reasons += fmt::format("\n- {}: {}", checkpoint.string(), error.what());
    }
  }
  if (reasons.empty()) return std::nullopt;
  Fail(ExitCode::kCheckpoint,
       "data.tokenizer is not set, and no checkpoint gives its tokenizer; restore one, or set "
       "data.tokenizer:{}",
       reasons);
}

}  // namespace

Tokenizer OpenTokenizer(const Config& config, const std::optional<InitialModel>& opened) {
  const std::string& given = config.data().tokenizer();
  const int32_t extra_ids = config.data().extra_ids();
  if (!given.empty()) return Tokenizer(given, extra_ids);
  const std::string& run = config.train().directory();
  const std::string& initial = config.checkpoint().initial();
  std::vector<Path> checkpoints;
  if (!run.empty()) checkpoints = CheckpointsAt(RunDirectory{run}.checkpoints());
  if (checkpoints.empty() && opened && opened->tokenizer) {
    return Tokenizer(opened->path / kTokenizerFile, *opened->tokenizer, extra_ids);
  }
  if (checkpoints.empty() && !initial.empty()) {
    if (const auto model = OpenForeign(initial)) {
      return Tokenizer(Path(initial) / kTokenizerFile, model->tokenizer, extra_ids);
    }
    checkpoints = CheckpointsAt(initial);
  }
  if (auto tokenizer = TokenizerIn(checkpoints, extra_ids)) return std::move(*tokenizer);
  Fail(ExitCode::kConfig,
       "no tokenizer: set data.tokenizer to a SentencePiece model. It may only be left out where "
       "the run continues from a checkpoint, or checkpoint.initial names one, that holds its "
       "tokenizer{}",
       checkpoints.empty() ? "" : fmt::format("; {} does not", checkpoints.front().string()));
}

}  // namespace syntra
