// SPDX-License-Identifier: Apache-2.0
#include "train/corpus_checks.h"

#include <algorithm>

#include "base/text.h"
#include "data/corpus_index.h"
#include "data/first_records.h"
#include "data/training_data.h"
#include "train/held_out.h"

namespace syntra {

CorpusChecks::CorpusChecks(const Config& config, const RunDirectory& directory)
    : config_(config),
      prepared_(directory.Prepared(config.data())),
      splits_(Preparations(config.data(), prepared_)) {}

std::string CorpusChecks::CheckTraining(const std::optional<Tokenizer>& tokenizer) {
  return CheckSplit(0, tokenizer);
}

std::string CorpusChecks::CheckValidation(const std::optional<Tokenizer>& tokenizer) {
  return splits_.size() > 1 ? CheckSplit(1, tokenizer) : "none";
}

std::string CorpusChecks::CheckSplit(size_t split, const std::optional<Tokenizer>& tokenizer) {
  if (!tokenizer) return Counted(std::ssize(ShardTasks(splits_[split])), "file");
  const PreparedState& state = states_[split].emplace(LookAtPrepared(splits_[split], *tokenizer));
  return Counted(state.files, "file") + ", " + HumanBytes(static_cast<double>(state.source_bytes));
}

CheckResult CorpusChecks::CheckHeldOut() const {
  if (splits_.size() < 2) return "none";
  std::array<std::vector<Path>, 2> files;
  for (size_t i = 0; i < files.size(); ++i) {
    for (const ShardTask& task : ShardTasks(splits_[i])) files[i].push_back(task.source);
  }
  const std::string both = FilesNotHeldOut(files[0], files[1]);
  if (both.empty()) return "no validation file is a training file";
  return {both, Finding::State::kWarning};
}

CheckResult CorpusChecks::CheckFirst() const {
  const std::vector<Path> empty = CheckFirstRecords(config_.data());
  if (empty.empty()) return "every file begins with documents";
  return {fmt::format("{} without a document, such as {}", Counted(std::ssize(empty), "file"),
                      empty.front().string()),
          Finding::State::kWarning};
}

CheckResult CorpusChecks::CheckShards() const {
  if (std::filesystem::exists(prepared_ / kCorpusIndexName) &&
      !std::filesystem::exists(splits_.at(0).directory)) {
    Fail(ExitCode::kData,
         "{0} holds token shards itself, but data.prepared names the directory around \"train\" "
         "and \"validation\": move its files to {1}, or prepare again with `syntra prepare`",
         prepared_.string(), splits_.at(0).directory.string());
  }
  int64_t files = 0, missing = 0;
  std::string mismatch;
  for (size_t i = 0; i < splits_.size(); ++i) {
    const PreparedState& state = *states_.at(i);
    files += state.files;
    missing += std::ssize(state.unfinished);
    if (mismatch.empty()) mismatch = state.mismatch;
    // Otherwise they are in the run directory.
    const bool is_named = !config_.data().prepared().empty();
    if (is_named && !state.unfinished.empty()) CheckWritable(splits_[i].directory, "data.prepared");
  }
  const std::string text =
      fmt::format("{}: {} of {} can be used", prepared_.string(), files - missing, files);
  if (mismatch.empty()) return text;
  return {fmt::format("{}, and others will be made again: {}", text, mismatch),
          Finding::State::kWarning};
}

void CorpusChecks::CheckIsThatOf(const CheckpointSummary& checkpoint) const {
  CorpusIndex index;
  try {
    index = ReadIndex(splits_.at(0).directory);
  } catch (const Error&) {
    return;  // there is none, or it is damaged: the preparation makes it anew
  }
  if (!HasShards(checkpoint, ToHex(index.DataDigest()))) return;
  std::vector<std::string> before, now;
  for (const IndexEntry& entry : index.shards) before.push_back(Path(entry.file).stem().string());
  for (const ShardTask& task : ShardTasks(splits_.at(0))) {
    now.push_back(task.source.filename().string());
  }
  if (before == now) return;
  const auto [left, right] = std::ranges::mismatch(before, now);
  Fail(ExitCode::kCheckpoint,
       "{} was trained on another corpus (files: {} then, {} now); the first difference: {} in "
       "place of {}. Let data.train name the same files in the same order, or choose another "
       "train.directory and start from its parameters with checkpoint.initial",
       checkpoint.path.string(), before.size(), now.size(), right == now.end() ? "nothing" : *right,
       left == before.end() ? "nothing" : *left);
}

std::string CorpusChecks::ShardsDigest() const {
  return states_[0] && states_[0]->data_digest ? ToHex(*states_[0]->data_digest) : "";
}

std::vector<DiskNeed> CorpusChecks::DiskNeeds() const {
  std::vector<DiskNeed> needs;
  for (size_t i = 0; i < splits_.size(); ++i) {
    const PreparedState& state = *states_.at(i);
    needs.push_back({fmt::format("{} shards", i == 0 ? "training" : "validation"),
                     splits_[i].directory, state.low_bytes, state.probable_bytes - state.low_bytes,
                     /*is_estimated=*/true});
  }
  return needs;
}

}  // namespace syntra
