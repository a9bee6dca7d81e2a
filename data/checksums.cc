// SPDX-License-Identifier: Apache-2.0
#include "data/checksums.h"

#include <algorithm>
#include <cstring>

#include "base/digest.h"
#include "base/divide.h"
#include "base/error.h"

namespace syntra {
namespace {

constexpr char kSealMagic[8] = {'S', 'Y', 'N', 'T', 'S', 'U', 'M', 'S'};

struct Seal {
  char magic[8];
  uint64_t content_bytes;
  Digest digest;  // of the checksums and of the fields above
};
static_assert(sizeof(Seal) == 32);
constexpr size_t kSealedFields = offsetof(Seal, digest);

Digest SealDigest(std::span<const std::byte> checksums, const Seal& seal) {
  DigestStream digest;
  digest.Add(checksums);
  digest.Add(std::as_bytes(std::span(&seal, 1)).first(kSealedFields));
  return digest.Finish();
}

void Append(std::vector<std::byte>* bytes, std::span<const std::byte> more) {
  bytes->insert(bytes->end(), more.begin(), more.end());
}

}  // namespace

void ChecksumWriter::Add(std::span<const std::byte> bytes) {
  bytes_ += bytes.size();
  while (!bytes.empty()) {
    const size_t count = std::min(kChecksumBlock - begun_.size(), bytes.size());
    Append(&begun_, bytes.first(count));
    bytes = bytes.subspan(count);
    if (begun_.size() < kChecksumBlock) return;
    checksums_.push_back(ShortDigestOf(begun_));
    begun_.clear();
  }
}

std::vector<std::byte> ChecksumWriter::End() {
  SYNTRA_CHECK(bytes_ % sizeof(uint64_t) == 0, "checksums after {} bytes would not be aligned",
               bytes_);
  if (!begun_.empty()) checksums_.push_back(ShortDigestOf(begun_));
  const auto checksums = std::as_bytes(std::span(checksums_));
  Seal seal{.magic = {}, .content_bytes = bytes_, .digest = {}};
  std::memcpy(seal.magic, kSealMagic, sizeof kSealMagic);
  seal.digest = SealDigest(checksums, seal);
  std::vector<std::byte> end(checksums.begin(), checksums.end());
  Append(&end, std::as_bytes(std::span(&seal, 1)));
  return end;
}

std::optional<Checksums> Checksums::AtEndOf(std::span<const std::byte> file) {
  Seal seal;
  if (file.size() < sizeof seal) return std::nullopt;
  const auto before = file.first(file.size() - sizeof seal);
  std::memcpy(&seal, file.data() + before.size(), sizeof seal);
  const uint64_t bytes = seal.content_bytes;
  if (std::memcmp(seal.magic, kSealMagic, sizeof kSealMagic) != 0 || bytes > before.size() ||
      bytes % sizeof(uint64_t) != 0) {
    return std::nullopt;
  }
  const auto checksums = before.subspan(bytes);
  const size_t blocks = DivideUp<size_t>(bytes, kChecksumBlock);
  if (checksums.size() != blocks * sizeof(uint64_t)) return std::nullopt;
  if (SealDigest(checksums, seal) != seal.digest) return std::nullopt;
  return Checksums(before.first(bytes),
                   {reinterpret_cast<const uint64_t*>(checksums.data()), blocks});
}

std::optional<size_t> Checksums::FirstDamaged(size_t begin, size_t end) const {
  SYNTRA_CHECK(begin <= end && end <= content_.size(), "bytes [{}, {}) of {}", begin, end,
               content_.size());
  for (size_t block = begin / kChecksumBlock; block * kChecksumBlock < end; ++block) {
    const size_t at = block * kChecksumBlock;
    const auto bytes = content_.subspan(at, std::min(kChecksumBlock, content_.size() - at));
    if (ShortDigestOf(bytes) != checksums_[block]) return at;
  }
  return std::nullopt;
}

}  // namespace syntra
