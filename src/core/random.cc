// SPDX-License-Identifier: Apache-2.0
#include "core/random.h"

namespace syntra {

RandomKey DeriveKey(uint64_t seed, std::string_view purpose, uint64_t a, uint64_t b) {
  // FNV-1a of the purpose selects the stream; Philox mixes the rest.
  uint64_t hash = 0xcbf29ce484222325ull;
  for (const char c : purpose) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  const RandomKey seed_key{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  const RandomBits first = RandomAt(seed_key, hash, a);
  const RandomBits second = RandomAt({first[0], first[1]}, b, first[2]);
  return {second[0], second[1]};
}

}  // namespace syntra
