// SPDX-License-Identifier: Apache-2.0
// A checkpoint whose MANIFEST is anything with a right digest, beside a file that is as it should
// be: every tensor is read, and is what the file has at its offset.
#include <cstring>

#include "checkpoint/layout.h"
#include "checkpoint/read.h"
#include "fuzz/target.h"
#include "tests/checkpoint/forged.h"

namespace syntra {
namespace {

constexpr const char* kShard = "shard-00000.h5";

const std::string& Shard() {
  static const std::string bytes = [] {
    std::string made;
    for (int i = 0; i < 600; ++i) made += static_cast<char>(i * 131 % 251);
    return made;
  }();
  return bytes;
}

void Run(std::string_view input) {
  const Path directory = InputDirectory() / "checkpoint";
  CreateDirectories(directory);
  InputFile(Shard(), "checkpoint/shard-00000.h5");
  InputFile(Signed(std::string(input)), "checkpoint/MANIFEST");
  Checkpoint checkpoint(directory);
  for (const auto& [name, entry] : checkpoint.tensors()) {
    std::vector<std::byte> values(entry.type.bytes());
    checkpoint.Read(name, std::span(values));
    SYNTRA_CHECK(std::memcmp(values.data(), Shard().data() + entry.offset, values.size()) == 0);
  }
  for (const auto& [name, file] : checkpoint.files()) checkpoint.ReadFile(name);
  OptimizerStepsBefore(checkpoint);
}

std::vector<std::string> Seeds() {
  Manifest manifest;
  manifest.info = {.step = 3, .run_id = "a", .attributes = {{kOptimizerStepsAttribute, "12"}}};
  manifest.files[kShard] = {static_cast<int64_t>(Shard().size()), ToHex(DigestOf(Shard()))};
  manifest.tensors["step"] = {{DType::kI32, {}}, kShard, 596};
  manifest.tensors["moments/row"] = {{DType::kF64, {3, 1}}, kShard, 1};
  manifest.tensors["parameters/value"] = {{DType::kBF16, {2, 3, 4, 5}}, kShard, 0};
  return {Unsigned(ToText(manifest))};
}

}  // namespace

const Target fuzz_checkpoint = {
    .name = "checkpoint",
    .refusals = {ExitCode::kCheckpoint},
    .run = Run,
    .seeds = Seeds,
    .tokens = {"\"shape\": [", "\"offset\": ", "\"bytes\": ", "\"f64\"", "600", "599", "0",
               "9223372036854775807", "-1", "\"../a\"", ","},
    .mutations = 1000};

}  // namespace syntra
