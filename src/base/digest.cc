// SPDX-License-Identifier: Apache-2.0
#include "base/digest.h"

#include <xxhash.h>

#include <cstring>
#include <new>

#include "base/direct_io.h"

namespace syntra {
namespace {

Digest Canonical(XXH128_hash_t hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  Digest digest;
  static_assert(sizeof digest == sizeof canonical.digest);
  std::memcpy(digest.data(), canonical.digest, sizeof digest);
  return digest;
}

}  // namespace

struct DigestStream::State {
  XXH3_state_t* hash = nullptr;
};

DigestStream::DigestStream() : state_(std::make_unique<State>()) {
  state_->hash = XXH3_createState();
  if (!state_->hash) throw std::bad_alloc();
  XXH3_128bits_reset(state_->hash);
}

DigestStream::~DigestStream() { XXH3_freeState(state_->hash); }

void DigestStream::Add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_->hash, bytes.data(), bytes.size());
}

Digest DigestStream::Finish() const { return Canonical(XXH3_128bits_digest(state_->hash)); }

Digest DigestOf(std::span<const std::byte> bytes) {
  return Canonical(XXH3_128bits(bytes.data(), bytes.size()));
}

uint64_t ShortDigestOf(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

Digest DigestOf(std::string_view text) { return DigestOf(std::as_bytes(std::span(text))); }

// Read in blocks: a mapped file that another process cuts short would end this one by SIGBUS.
Digest DigestOfRest(File& file, const std::function<void()>& after_block) {
  DigestStream stream;
  const DirectBlock block(size_t{4} << 20);
  while (const size_t count = file.Read(block.bytes())) {
    stream.Add(block.bytes().first(count));
    if (after_block) after_block();
  }
  return stream.Finish();
}

std::string ToHex(const Digest& digest) {
  std::string text;
  for (const uint8_t byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace syntra
