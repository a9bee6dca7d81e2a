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
constexpr size_t kVerifiedBytes = size_t{4} << 20;  // between two calls of after_block
constexpr size_t kAlignment = 64;

struct Preamble {
  char magic[8];
  uint32_t version;  // of the file as far as `digest`
  uint32_t token_bytes;
  uint8_t zero[48];
};
static_assert(sizeof(Preamble) == kAlignment);

// After the offsets, because the counts are known only then. `digest` is of every byte before it,
// `content` of every byte before the trailer.
struct Trailer {
  char magic[8];
  uint64_t documents, tokens, empty_documents, bad_records, source_bytes;
  Digest source, tokenizer, settings, digest, content;
};
static_assert(sizeof(Trailer) == 128);
constexpr size_t kDigestedFields = offsetof(Trailer, digest);

template <typename T>
std::span<const std::byte> BytesOf(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

template <typename T>
T ValueAt(std::span<const std::byte> bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// Shards of the first versions end with their digest.
bool EndsWithoutChecksums(std::span<const std::byte> file) {
  constexpr size_t kFirstTrailer = offsetof(Trailer, content);
  return file.size() >= kFirstTrailer &&
         std::memcmp(&file[file.size() - kFirstTrailer], kMagic, sizeof kMagic) == 0;
}

void CheckBytes(const Path& path, const Checksums& checksums, size_t begin, size_t end) {
  if (const std::optional<size_t> at = checksums.FirstDamaged(begin, end)) {
    throw ShardError(
        path, fmt::format("damaged near byte {}: the bytes do not match their checksum", *at));
  }
}

// A shard whose end has been checked.
struct Layout {
  Checksums checksums;
  Trailer trailer;
  uint32_t token_bytes;
  size_t offsets_at, offsets_end;
};

Layout LayoutOf(const MappedFile& map) {
  const Path& path = map.path();
  if (map.bytes().size() < sizeof(Preamble) + sizeof(Trailer)) {
    throw ShardError(path, "too short for a token shard");
  }
  const auto preamble = ValueAt<Preamble>(map.bytes(), 0);
  if (std::memcmp(preamble.magic, kMagic, sizeof kMagic) != 0) {
    throw ShardError(path, "not a token shard");
  }
  if (preamble.version != kShardVersion) {
    throw ShardError(path, fmt::format("token shard of version {}, this program reads {}",
                                       preamble.version, kShardVersion));
  }
  const std::optional<Checksums> checksums = Checksums::AtEndOf(map.bytes());
  if (!checksums) {
    throw ShardError(path,
                     EndsWithoutChecksums(map.bytes())
                         ? "an earlier version of this program made it, without the checksums of "
                           "its blocks that are needed now"
                         : "cut short or damaged: no checksums of its blocks at its end");
  }
  const size_t size = checksums->content().size();
  if (size < sizeof(Preamble) + sizeof(Trailer)) throw ShardError(path, "too short");
  const size_t trailer_at = size - sizeof(Trailer);
  CheckBytes(path, *checksums, 0, sizeof(Preamble));
  CheckBytes(path, *checksums, trailer_at, size);
  if (preamble.token_bytes != 2 && preamble.token_bytes != 4) {
    throw ShardError(path, fmt::format("{} bytes a token", preamble.token_bytes));
  }
  const auto trailer = ValueAt<Trailer>(map.bytes(), trailer_at);
  if (std::memcmp(trailer.magic, kMagic, sizeof kMagic) != 0) {
    throw ShardError(path, "no trailer at its end");
  }
  // These bounds keep the sums below from overflowing.
  if (trailer.documents > size || trailer.tokens > size) {
    throw ShardError(path, "impossible counts");
  }
  const size_t offsets_at =
      AlignUp(sizeof(Preamble) + trailer.tokens * preamble.token_bytes, kAlignment);
  const size_t offsets_end = offsets_at + (trailer.documents + 1) * sizeof(uint64_t);
  if (AlignUp(offsets_end, kAlignment) != trailer_at) {
    throw ShardError(path, "size does not match its counts");
  }
  return {*checksums, trailer, preamble.token_bytes, offsets_at, offsets_end};
}

ShardSummary SummaryOf(const Path& path, const Trailer& trailer) {
  return {.path = path,
          .facts = {.documents = trailer.documents,
                    .tokens = trailer.tokens,
                    .empty_documents = trailer.empty_documents,
                    .bad_records = trailer.bad_records,
                    .source_bytes = trailer.source_bytes,
                    .source = trailer.source,
                    .tokenizer = trailer.tokenizer,
                    .settings = trailer.settings},
          .digest = trailer.digest,
          .content = trailer.content};
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
  checksums_.Add(bytes);
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
  trailer.content = digest_.Finish();
  const auto digested = BytesOf(trailer).first(kDigestedFields);
  digest_.Add(digested);
  trailer.digest = digest_.Finish();
  WriteBytes(BytesOf(trailer));
  file_.Write(checksums_.End());
  file_.Finish();
  file_.PutInPlace();
  return trailer.digest;
}

ShardSummary ReadShardSummary(const Path& path) {
  return SummaryOf(path, LayoutOf(MappedFile(path, ExitCode::kData)).trailer);
}

TokenShard::TokenShard(const Path& path, int64_t vocabulary_size)
    : map_(path, ExitCode::kData), vocabulary_size_(vocabulary_size) {
  const Layout layout = LayoutOf(map_);
  checksums_ = layout.checksums;
  summary_ = SummaryOf(path, layout.trailer);
  token_bytes_ = layout.token_bytes;
  map_.Prefetch(layout.offsets_at, layout.offsets_end);
  CheckBytes(layout.offsets_at, layout.offsets_end);
  offsets_ = reinterpret_cast<const uint64_t*>(map_.bytes().data() + layout.offsets_at);
  const std::span offsets(offsets_, document_count() + 1);
  if (offsets.front() != 0 || offsets.back() != layout.trailer.tokens ||
      std::ranges::adjacent_find(offsets, std::greater_equal<>()) != offsets.end()) {
    throw ShardError(path, "document offsets do not increase from 0 to the token count");
  }
  map_.ExpectRandomReads(0, layout.offsets_end);
}

void TokenShard::CheckBytes(size_t begin, size_t end) const {
  syntra::CheckBytes(summary_.path, *checksums_, begin, end);
}

void TokenShard::Verify(const std::function<void()>& after_block) const {
  const size_t size = checksums_->content().size();
  map_.Prefetch(0, std::min(kVerifiedBytes, size));
  for (size_t at = 0; at < size; at += kVerifiedBytes) {
    const size_t end = std::min(at + kVerifiedBytes, size);
    map_.Prefetch(end, std::min(end + kVerifiedBytes, size));
    CheckBytes(at, end);
    if (after_block) after_block();
  }
}

std::pair<size_t, size_t> TokenShard::BytesOf(int64_t begin, int64_t count) const {
  SYNTRA_CHECK(begin >= 0 && count >= 0 && begin + count <= token_count(), "tokens [{}, {}) of {}",
               begin, begin + count, token_count());
  const size_t at = sizeof(Preamble) + begin * token_bytes_;
  return {at, at + count * token_bytes_};
}

void TokenShard::Prefetch(int64_t begin, int64_t count) const {
  // Whole pages are read, so the rest of the blocks comes with them.
  const auto [first, last] = BytesOf(begin, count);
  map_.Prefetch(first, last);
}

void TokenShard::CopyTokens(int64_t begin, std::span<int32_t> out) const {
  const auto [at, end] = BytesOf(begin, std::ssize(out));
  CheckBytes(at, end);
  const std::byte* tokens = map_.bytes().data() + at;
  const auto copy = [&]<typename Id>(const Id* ids) {
    uint32_t largest = 0;
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = static_cast<int32_t>(ids[i]);
      largest = std::max<uint32_t>(largest, ids[i]);
    }
    return largest;
  };
  const uint32_t largest = token_bytes_ == 2 ? copy(reinterpret_cast<const uint16_t*>(tokens))
                                             : copy(reinterpret_cast<const uint32_t*>(tokens));
  // Checksums are no defence against a forged shard, and such an id would be read out of bounds.
  if (largest >= vocabulary_size_) {
    throw ShardError(summary_.path, fmt::format("token id {} is outside the vocabulary of {}",
                                                largest, vocabulary_size_));
  }
}

}  // namespace syntra
