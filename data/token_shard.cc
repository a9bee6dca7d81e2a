// SPDX-License-Identifier: Apache-2.0
#include "data/token_shard.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "core/buffer.h"

namespace syntra {
namespace {

static_assert(std::endian::native == std::endian::little, "shards are little-endian");

constexpr char kMagic[8] = {'S', 'Y', 'N', 'T', 'O', 'K', 'E', 'N'};
constexpr uint32_t kShardVersion = 1;
constexpr size_t kFlushBytes = size_t{1} << 20;
constexpr size_t kDigestBytes = size_t{4} << 20;  // between two calls of after_block
constexpr size_t kAlignment = 64;

struct Preamble {
  char magic[8];
  uint32_t version;
  uint32_t token_bytes;
  uint8_t zero[48];
};
static_assert(sizeof(Preamble) == kAlignment);

// At the end of the file, because the counts are known only then. `digest` covers every byte before
// it.
struct Trailer {
  char magic[8];
  uint64_t documents, tokens, empty_documents, bad_records, source_bytes;
  Digest source, tokenizer, settings, digest;
};
static_assert(sizeof(Trailer) == 112);

template <typename T>
std::span<const std::byte> BytesOf(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

}  // namespace

ShardError::ShardError(const Path& path, const std::string& reason)
    : Error(ExitCode::kData,
            fmt::format("{}: {}; remove it and prepare the corpus again", path.string(), reason)),
      problem_(path.string() + ": " + reason) {}

TokenShardWriter::TokenShardWriter(const Path& path, int64_t vocabulary_size)
    : file_(path),
      token_bytes_(vocabulary_size <= 65536 ? 2 : 4),
      vocabulary_size_(vocabulary_size) {
  Preamble preamble{};
  std::memcpy(preamble.magic, kMagic, sizeof kMagic);
  preamble.version = kShardVersion;
  preamble.token_bytes = token_bytes_;
  WriteBytes(BytesOf(preamble));
}

void TokenShardWriter::WriteBytes(std::span<const std::byte> bytes) {
  file_.Write(bytes);
  digest_.Add(bytes);
  written_ += bytes.size();
}

void TokenShardWriter::FlushTokens() {
  WriteBytes(pending_);
  pending_.clear();
}

void TokenShardWriter::Pad() {
  const std::vector<std::byte> zeros(AlignUp(written_, kAlignment) - written_);
  WriteBytes(zeros);
}

void TokenShardWriter::AddDocument(std::span<const int32_t> tokens) {
  if (tokens.empty()) {
    ++empty_;
    return;
  }
  const size_t at = pending_.size();
  pending_.resize(at + tokens.size() * token_bytes_);
  std::byte* out = pending_.data() + at;
  for (const int32_t token : tokens) {
    SYNTRA_CHECK(token >= 0 && token < vocabulary_size_, "token id {} outside the vocabulary of {}",
                 token, vocabulary_size_);
    std::memcpy(out, &token, token_bytes_);
    out += token_bytes_;
  }
  tokens_ += tokens.size();
  offsets_.push_back(tokens_);
  if (pending_.size() >= kFlushBytes) FlushTokens();
}

Digest TokenShardWriter::Commit(ShardFacts* facts) {
  FlushTokens();
  Pad();
  WriteBytes(std::as_bytes(std::span(offsets_)));
  Pad();
  facts->documents = offsets_.size() - 1;
  facts->tokens = tokens_;
  facts->empty_documents = empty_;
  Trailer trailer{.documents = facts->documents,
                  .tokens = facts->tokens,
                  .empty_documents = facts->empty_documents,
                  .bad_records = facts->bad_records,
                  .source_bytes = facts->source_bytes,
                  .source = facts->source,
                  .tokenizer = facts->tokenizer,
                  .settings = facts->settings};
  std::memcpy(trailer.magic, kMagic, sizeof kMagic);
  WriteBytes(BytesOf(trailer).first(offsetof(Trailer, digest)));
  const Digest digest = digest_.Finish();
  file_.Write(BytesOf(digest));
  file_.Finish();
  file_.PutInPlace();
  return digest;
}

TokenShard::TokenShard(const Path& path, bool verify, const std::function<void()>& after_block)
    : map_(path, ExitCode::kData) {
  const auto bytes = map_.bytes();
  if (bytes.size() < sizeof(Preamble) + sizeof(Trailer))
    throw ShardError(path, "too short for a token shard");
  Preamble preamble;
  std::memcpy(&preamble, bytes.data(), sizeof preamble);
  if (std::memcmp(preamble.magic, kMagic, sizeof kMagic) != 0)
    throw ShardError(path, "not a token shard");
  if (preamble.version != kShardVersion) {
    throw ShardError(path, fmt::format("token shard of version {}, this program reads {}",
                                       preamble.version, kShardVersion));
  }
  if (preamble.token_bytes != 2 && preamble.token_bytes != 4) {
    throw ShardError(path, fmt::format("{} bytes a token", preamble.token_bytes));
  }
  token_bytes_ = preamble.token_bytes;
  Trailer trailer;
  std::memcpy(&trailer, bytes.data() + bytes.size() - sizeof trailer, sizeof trailer);
  if (std::memcmp(trailer.magic, kMagic, sizeof kMagic) != 0) {
    throw ShardError(path, "cut short or damaged: no trailer at its end");
  }
  // These bounds keep the sums below from overflowing.
  const uint64_t limit = bytes.size();
  if (trailer.documents > limit || trailer.tokens > limit)
    throw ShardError(path, "impossible counts");
  const uint64_t offsets_at = AlignUp(sizeof(Preamble) + trailer.tokens * token_bytes_, kAlignment);
  const uint64_t trailer_at =
      AlignUp(offsets_at + (trailer.documents + 1) * sizeof(uint64_t), kAlignment);
  if (trailer_at + sizeof(Trailer) != bytes.size())
    throw ShardError(path, "size does not match its counts");
  if (verify) {
    DigestStream digest;
    for (size_t at = 0; at < trailer_at; at += kDigestBytes) {
      digest.Add(bytes.subspan(at, std::min(kDigestBytes, trailer_at - at)));
      if (after_block) after_block();
    }
    content_ = digest.Finish();
    digest.Add(bytes.subspan(trailer_at, offsetof(Trailer, digest)));
    if (digest.Finish() != trailer.digest) {
      throw ShardError(path, "damaged: its digest does not match its content");
    }
  }
  facts_ = {trailer.documents,    trailer.tokens, trailer.empty_documents, trailer.bad_records,
            trailer.source_bytes, trailer.source, trailer.tokenizer,       trailer.settings};
  digest_ = trailer.digest;
  tokens_ = bytes.data() + sizeof(Preamble);
  offsets_ = reinterpret_cast<const uint64_t*>(bytes.data() + offsets_at);
  const std::span offsets(offsets_, trailer.documents + 1);
  const bool increasing =
      !verify || std::ranges::adjacent_find(offsets, std::greater_equal<>()) == offsets.end();
  if (offsets.front() != 0 || offsets.back() != trailer.tokens || !increasing) {
    throw ShardError(path, "document offsets do not increase from 0 to the token count");
  }
}

uint32_t TokenShard::LargestToken() const {
  const auto largest = [&]<typename Id>(const Id* ids) -> uint32_t {
    return facts_.tokens == 0 ? 0 : *std::max_element(ids, ids + facts_.tokens);
  };
  return token_bytes_ == 2 ? largest(reinterpret_cast<const uint16_t*>(tokens_))
                           : largest(reinterpret_cast<const uint32_t*>(tokens_));
}

void TokenShard::CopyTokens(int64_t begin, std::span<int32_t> out) const {
  const auto count = static_cast<int64_t>(out.size());
  SYNTRA_CHECK(begin >= 0 && begin + count <= token_count(), "tokens [{}, {}) of {}", begin,
               begin + count, token_count());
  const auto copy = [&]<typename Id>(const Id* ids) {
    std::copy_n(ids + begin, out.size(), out.data());
  };
  if (token_bytes_ == 2) {
    copy(reinterpret_cast<const uint16_t*>(tokens_));
  } else {
    copy(reinterpret_cast<const uint32_t*>(tokens_));
  }
}

}  // namespace syntra
