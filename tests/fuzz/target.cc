// SPDX-License-Identifier: Apache-2.0
#include "target.h"

#include <algorithm>
#include <cstring>

#include "base/lfs_pointer.h"
#include "core/random.h"
#include "tests/base/scratch.h"
#include "tests/base/source_directory.h"
#include "tests/data/corpus_files.h"

namespace syntra {
namespace {

template <typename T>
const T& Pick(std::span<const T> list, uint32_t bits) {
  return list[bits % list.size()];
}

// Numbers at which lengths and offsets overflow or change their sign.
constexpr uint64_t kExtremes[] = {0,
                                  1,
                                  0x7f,
                                  0x80,
                                  0xff,
                                  0x7fffffff,
                                  0x80000000,
                                  0xffffffff,
                                  uint64_t{1} << 32,
                                  INT64_MAX,
                                  uint64_t{1} << 63,
                                  UINT64_MAX};

void Overwrite(std::string* text, size_t at, std::string_view bytes) {
  text->replace(at, std::min(bytes.size(), text->size() - at), bytes);
}

// One change of `text` at `at`, over `length` bytes of it.
void Mutate(const Target& target, std::span<const std::string> seeds, const RandomBits& bits,
            size_t at, size_t length, std::string* text) {
  const std::string_view none;
  const std::string_view token =
      target.tokens.empty() ? none : Pick(std::span<const std::string>(target.tokens), bits[3]);
  switch (bits[0] % 9) {
    case 0:
      if (at < text->size()) (*text)[at] = static_cast<char>((*text)[at] ^ (1 << bits[3] % 8));
      break;
    case 1:
      text->erase(at, length);
      break;
    case 2:
      text->insert(at, text->substr(at, length));
      break;
    case 3:
      text->replace(at, length, length, static_cast<char>(bits[3]));
      break;
    case 4:
      text->resize(at);
      break;
    case 5:
      text->insert(at, token);
      break;
    case 6:
      Overwrite(text, at, token);
      break;
    case 7: {
      const uint64_t number = Pick(std::span<const uint64_t>(kExtremes), bits[3]);
      char bytes[sizeof number];
      std::memcpy(bytes, &number, sizeof number);
      Overwrite(text, at, std::string_view(bytes, size_t{1} << bits[2] % 4));
      break;
    }
    default: {
      const std::string& other = Pick(seeds, bits[3]);
      if (!other.empty()) *text = text->substr(0, at) + other.substr(bits[2] % other.size());
    }
  }
}

}  // namespace

bool MayBeRefused(const Target& target, std::string_view input, ExitCode code) {
  if (code == ExitCode::kResources && input.find(kLfsPointerStart) != input.npos) return true;
  return std::ranges::find(target.refusals, code) != target.refusals.end();
}

bool Accepts(const Target& target, std::string_view input) {
  try {
    target.run(input);
    return true;
  } catch (const Error& error) {
    if (MayBeRefused(target, input, error.code())) return false;
    throw;
  }
}

std::vector<Path> ReproducersOf(const Target& target) {
  const Path directory = Path(SourceDirectory()) / "tests/fuzz/reproducers" / target.name;
  return Exists(directory) ? ListDirectory(directory) : std::vector<Path>();
}

std::string MutationOf(const Target& target, std::span<const std::string> seeds, uint64_t number) {
  std::string text = seeds[number % seeds.size()];
  const RandomKey key = DeriveKey(1, target.name, number);
  const int changes = 1 + static_cast<int>(RandomAt(key, 0)[0] % 4);
  for (int change = 1; change <= changes; ++change) {
    const RandomBits bits = RandomAt(key, change);
    const size_t at = bits[1] % (text.size() + 1);
    const size_t length = std::min<size_t>(1 + bits[2] % 16, text.size() - at);
    Mutate(target, seeds, RandomAt(key, change, 1), at, length, &text);
  }
  return text;
}

const Path& InputDirectory() {
  static const Path directory = ScratchInMemory("fuzz");
  return directory;
}

Path InputFile(std::string_view content, const std::string& name) {
  return WriteScratch(InputDirectory() / name, content);
}

std::string SourceFile(const std::string& path) {
  return ReadWholeFile(Path(SourceDirectory()) / path);
}

}  // namespace syntra
