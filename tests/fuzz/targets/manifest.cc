// SPDX-License-Identifier: Apache-2.0
// The MANIFEST of a checkpoint, with a digest line that is right: tensors lie within their files,
// and what is read is the same once written. Then what a run keeps in its attributes.
#include "checkpoint/manifest.h"

#include "fuzz/target.h"
#include "tests/checkpoint/forged.h"

namespace syntra {
namespace {

void Run(std::string_view input) {
  const Manifest manifest = ParseManifest(Signed(std::string(input)));
  for (const auto& [name, entry] : manifest.tensors) {
    const int64_t bytes = manifest.files.at(entry.file).bytes;
    SYNTRA_CHECK(static_cast<int64_t>(entry.type.bytes()) <=
                 bytes - std::max<int64_t>(entry.offset, 0));
    SYNTRA_CHECK((entry.offset >= 0) == (manifest.version > 1));
  }
  if (manifest.version == 1) return;
  const std::string text = ToText(manifest);
  SYNTRA_CHECK(ToText(ParseManifest(text)) == text);
}

std::vector<std::string> Seeds() {
  Manifest manifest;
  manifest.info = {
      .step = 12, .run_id = "run-\xc3\xa4", .attributes = {{"config", "model {\n}\n"}}};
  std::vector<std::string> seeds = {Unsigned(ToText(manifest))};
  manifest.files["shard-00000.h5"] = {8192, std::string(32, '0')};
  manifest.tensors["step"] = {{DType::kI32, {}}, "shard-00000.h5", 96};
  manifest.tensors["parameters/value"] = {{DType::kBF16, {2, 3, 4, 5}}, "shard-00000.h5", 4096};
  seeds.push_back(Unsigned(ToText(manifest)));
  std::string first = Unsigned(SourceFile("tests/checkpoint/version_1/step-0000000020/MANIFEST"));
  seeds.push_back(std::move(first));
  return seeds;
}

}  // namespace

const Target fuzz_manifest = {
    .name = "manifest",
    .refusals = {ExitCode::kCheckpoint},
    .run = Run,
    .seeds = Seeds,
    .tokens = {"\"shape\": [", "\"offset\": ", "\"bytes\": ", "\"dtype\": \"f64\"",
               "9223372036854775807", "18446744073709551615", "-1", "1e300", "\"..\"",
               "syntra-checkpoint 3", "[", "{", "\\u0000"},
    .mutations = 2000};

}  // namespace syntra
