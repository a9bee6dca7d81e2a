// SPDX-License-Identifier: Apache-2.0
// A safetensors file of anybody's: its header is the same once written, and every value can be
// read.
#include "convert/safetensors.h"

#include "fuzz/target.h"

namespace syntra {
namespace {

void CheckHeader(std::string_view file) {
  SafetensorsHeader header = ParseSafetensorsHeader(std::as_bytes(std::span(file)));
  std::string again = SafetensorsHeaderText(header);
  again.append(file.substr(header.bytes));
  const SafetensorsHeader same = ParseSafetensorsHeader(std::as_bytes(std::span(again)));
  SYNTRA_CHECK(same.metadata == header.metadata && same.tensors.size() == header.tensors.size());
  for (const auto& [name, entry] : header.tensors) {
    const SafetensorsEntry& other = same.tensors.at(name);
    SYNTRA_CHECK(other.type == entry.type && other.shape == entry.shape &&
                 other.begin == entry.begin && other.end == entry.end);
  }
}

void Run(std::string_view input) {
  const Path directory = InputDirectory() / "safetensors";
  CreateDirectories(directory);
  InputFile(input, "safetensors/model.safetensors");
  SafetensorsSource source(directory);
  for (const auto& [name, type] : source.tensors()) {
    std::vector<float> values(type.shape.size());
    source.Read(name, values);
  }
  CheckHeader(input);
}

std::string File(const SafetensorsHeader& header, size_t bytes) {
  return SafetensorsHeaderText(header) + std::string(bytes, 'v');
}

std::vector<std::string> Seeds() {
  using Type = SafetensorsType;
  return {File({}, 0), File({.tensors = {{"a", {Type::kF32, {2, 3}, 0, 24}},
                                         {"b", {Type::kBF16, {}, 24, 26}},
                                         {"c", {Type::kF16, {3}, 26, 32}},
                                         {"d", {Type::kF64, {1, 1}, 32, 40}}},
                             .metadata = {{"format", "pt"}}},
                            40)};
}

}  // namespace

const Target fuzz_safetensors = {
    .name = "safetensors",
    .refusals = {ExitCode::kCheckpoint},
    .run = Run,
    .seeds = Seeds,
    .tokens = {"\"dtype\":\"F16\"", "\"data_offsets\":[", "\"shape\":[", "\"__metadata__\":{",
               "\"a\":{", "9223372036854775807", "18446744073709551615", "-1", "1e300", "]", "}",
               ",", "\\u0000", "\xff"},
    .mutations = 2000};

}  // namespace syntra
