// SPDX-License-Identifier: Apache-2.0
// model.safetensors.index.json of anybody's, beside a file of tensors.
#include "convert/safetensors.h"

#include "fuzz/target.h"

namespace syntra {
namespace {

void Run(std::string_view input) {
  const Path directory = InputDirectory() / "indexed";
  CreateDirectories(directory);
  const SafetensorsHeader header{.tensors = {{"a", {SafetensorsType::kF32, {2}, 0, 8}},
                                             {"b", {SafetensorsType::kF32, {1}, 8, 12}}}};
  InputFile(SafetensorsHeaderText(header) + std::string(12, 'v'), "indexed/one.safetensors");
  InputFile(input, "indexed/model.safetensors.index.json");
  const SafetensorsSource source(directory);
  SYNTRA_CHECK(source.tensors().size() == 2 || source.tensors().empty());
}

std::vector<std::string> Seeds() {
  return {
      R"({"metadata":{"total_size":12},"weight_map":{"a":"one.safetensors","b":"one.safetensors"}})",
      R"({"weight_map":{}})"};
}

}  // namespace

const Target fuzz_safetensors_index = {
    .name = "safetensors_index",
    .refusals = {ExitCode::kCheckpoint},
    .run = Run,
    .seeds = Seeds,
    .tokens = {"\"weight_map\":", "\"one.safetensors\"", "\"../a\"", "\"\"", ".", "[", "{", "null",
               "1e999"},
    .mutations = 1000};

}  // namespace syntra
