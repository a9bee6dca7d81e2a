// SPDX-License-Identifier: Apache-2.0
// Makes files that are damaged on purpose but have correct digests and checksums.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"

namespace syntra {

// Appends the correct digest line to the text of a manifest.
inline std::string Signed(const std::string& text) {
  return text + "xxh3-128 " + ToHex(DigestOf(text)) + "\n";
}

// The text of a manifest without its digest line.
inline std::string Unsigned(const std::string& text) {
  return text.substr(0, text.rfind("xxh3-128"));
}

// Bob Jenkins' lookup3 (public domain), the checksum of HDF5's metadata.
inline uint32_t Lookup3(std::string_view bytes) {
  uint32_t a = 0xdeadbeef + static_cast<uint32_t>(bytes.size()), b = a, c = a;
  const auto add = [&](std::string_view part) {
    uint32_t words[3] = {};
    std::memcpy(words, part.data(), part.size());
    a += words[0];
    b += words[1];
    c += words[2];
  };
  const auto mix = [](uint32_t& x, uint32_t& y, uint32_t& z, int bits) {
    x = (x - z) ^ std::rotl(z, bits);
    z += y;
  };
  const auto last = [](uint32_t& x, uint32_t y, int bits) { x = (x ^ y) - std::rotl(y, bits); };
  while (bytes.size() > 12) {
    add(bytes.substr(0, 12));
    mix(a, b, c, 4), mix(b, c, a, 6), mix(c, a, b, 8);
    mix(a, b, c, 16), mix(b, c, a, 19), mix(c, a, b, 4);
    bytes.remove_prefix(12);
  }
  if (bytes.empty()) return c;
  add(bytes);
  last(c, b, 14), last(a, c, 11), last(b, a, 25), last(c, b, 16);
  last(a, c, 4), last(b, a, 14), last(c, b, 24);
  return c;
}

// A block of metadata, which its checksum follows.
struct Summed {
  size_t begin, size;
};

// Finds the superblock and all blocks that begin with a signature of four letters.
inline std::vector<Summed> FindSummed(const std::string& file) {
  std::vector<Summed> found;
  const auto look = [&](size_t begin) {
    for (size_t size = 8; size < 8192 && begin + size + 4 <= file.size(); ++size) {
      uint32_t stored;
      std::memcpy(&stored, file.data() + begin + size, sizeof(stored));
      if (Lookup3(std::string_view(file).substr(begin, size)) != stored) continue;
      found.push_back({begin, size});
      return;
    }
  };
  look(0);
  for (const char* signature : {"OHDR", "OCHK", "FRHP", "FHDB", "FHIB", "BTHD", "BTLF", "BTIN"}) {
    for (size_t at = file.find(signature); at != file.npos; at = file.find(signature, at + 1)) {
      look(at);
    }
  }
  return found;
}

// Changes one to three bytes of a block of metadata and corrects its checksum.
inline std::string Forged(std::string file, const std::vector<Summed>& summed, uint64_t seed) {
  std::mt19937_64 random(seed);
  const Summed piece = summed[random() % summed.size()];
  for (uint64_t left = 1 + random() % 3; left > 0; --left) {
    const size_t at = piece.begin + 4 + random() % (piece.size - 4);
    // Small numbers, the largest ones and single flipped bits do the most harm.
    const uint64_t kind = random() % 4;
    const char bit = static_cast<char>(file[at] ^ (1 << random() % 8));
    const char any = static_cast<char>(random());
    file[at] = kind == 0   ? '\xff'
               : kind == 1 ? static_cast<char>(random() % 16)
               : kind == 2 ? bit
                           : any;
  }
  const uint32_t sum = Lookup3(std::string_view(file).substr(piece.begin, piece.size));
  std::memcpy(file.data() + piece.begin + piece.size, &sum, sizeof(sum));
  return file;
}

}  // namespace syntra
