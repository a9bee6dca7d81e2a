// SPDX-License-Identifier: Apache-2.0
// Whether a finished token shard can be used as it is, or has to be made again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "data/bad_record.h"
#include "data/token_shard.h"

namespace syntra {

// Why a finished shard cannot be used.
enum class Mismatch {
  kSource,     // the corpus file has other bytes now
  kTokenizer,  // another model file
  kSettings,   // another data.text_field or data.extra_ids
  kBadRecords  // more bad records than the policy allows now
};

// The settings with which a shard must have been made.
struct ShardSettings {
  Digest tokenizer{};  // of the model file's bytes
  Digest settings{};   // SettingsDigest
  BadRecordPolicy on_bad_record;
};

// A corpus file as it is now.
struct CorpusFileState {
  int64_t bytes = 0;
  std::optional<Digest> digest;  // of its bytes; without it the size alone is compared
};

// The first reason why the shard with these facts cannot be used; nullopt: it can.
std::optional<Mismatch> MismatchOf(const ShardFacts& facts, const ShardSettings& wanted,
                                   const CorpusFileState& source);

// "X was made from other bytes than Y has now"
std::string MismatchText(Mismatch mismatch, const Path& shard, const Path& source);

}  // namespace syntra
