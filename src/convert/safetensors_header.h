// SPDX-License-Identifier: Apache-2.0
// The header of a safetensors file: 8 bytes with its length, then a JSON object that gives for each
// tensor its type, its shape and its bytes after the header
// (https://github.com/huggingface/safetensors#format). Files may come from anybody, so every rule
// of the format is checked before anything is allocated by what the header says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "core/shape.h"

namespace syntra {

// The element types that are read; integers and 8-bit floats hold no parameters of these models.
enum class SafetensorsType : uint8_t { kF64, kF32, kF16, kBF16 };

std::string_view NameOf(SafetensorsType type);  // "F32"
int64_t SizeOf(SafetensorsType type);

struct SafetensorsEntry {
  SafetensorsType type = SafetensorsType::kF32;
  Shape shape;
  int64_t begin = 0, end = 0;  // bytes after the header
};

inline constexpr int kMostShown = 80;  // characters of a foreign name in a message

struct SafetensorsHeader {
  static constexpr int64_t kMaxBytes = 100'000'000;  // as in the format's own reader
  static constexpr size_t kMaxTensors = 1'000'000;

  int64_t bytes = 0;  // where the tensors' bytes begin in the file
  std::map<std::string, SafetensorsEntry, std::less<>> tensors;
  std::map<std::string, std::string, std::less<>> metadata;
};

// `file` is the whole file. Throws Error(kCheckpoint), saying what is wrong, for anything that the
// format does not allow. Headers: longer than the file or kMaxBytes, JSON of another form, a name
// twice, a type that is not read, a shape of another size than its bytes. Bytes: outside the file,
// of two tensors, of none.
SafetensorsHeader ParseSafetensorsHeader(std::span<const std::byte> file);

// The first bytes of a file with these tensors and this metadata; `header.bytes` is not looked at.
// Tensors begin at multiples of 8 bytes if their sizes are such multiples.
std::string SafetensorsHeaderText(const SafetensorsHeader& header);

}  // namespace syntra
