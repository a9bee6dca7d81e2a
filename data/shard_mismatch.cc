// SPDX-License-Identifier: Apache-2.0
#include "data/shard_mismatch.h"

namespace syntra {

std::optional<Mismatch> MismatchOf(const ShardFacts& facts, const ShardSettings& wanted,
                                   const CorpusFileState& source) {
  if (static_cast<int64_t>(facts.source_bytes) != source.bytes) return Mismatch::kSource;
  if (source.digest && facts.source != *source.digest) return Mismatch::kSource;
  if (facts.tokenizer != wanted.tokenizer) return Mismatch::kTokenizer;
  if (facts.settings != wanted.settings) return Mismatch::kSettings;
  const auto bad = static_cast<int64_t>(facts.bad_records);
  const auto good = static_cast<int64_t>(facts.documents + facts.empty_documents);
  // A shard that was made under a laxer policy must not smuggle its bad records in.
  if (bad > wanted.on_bad_record.Limit(good + bad)) return Mismatch::kBadRecords;
  return std::nullopt;
}

std::string MismatchText(Mismatch mismatch, const Path& shard, const Path& source) {
  switch (mismatch) {
    case Mismatch::kSource:
      return fmt::format("{} was made from other bytes than {} has now", shard.string(),
                         source.string());
    case Mismatch::kTokenizer:
      return fmt::format("{} was made with another data.tokenizer", shard.string());
    case Mismatch::kSettings:
      return fmt::format("{} was made with another data.text_field or data.extra_ids",
                         shard.string());
    case Mismatch::kBadRecords:
      return fmt::format(
          "{} was made from a file with more bad records than data.on_bad_record and "
          "data.max_bad_fraction allow now",
          shard.string());
  }
  return "";
}

}  // namespace syntra
