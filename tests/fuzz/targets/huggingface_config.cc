// SPDX-License-Identifier: Apache-2.0
// config.json of a Hugging Face model: what is taken of it is the same once written.
#include "convert/huggingface_config.h"

#include "fuzz/target.h"

namespace syntra {
namespace {

void Run(std::string_view input) {
  const HuggingFaceConfig config = ParseHuggingFaceConfig(std::string(input));
  const std::string text = HuggingFaceConfigText(config);
  const HuggingFaceConfig again = ParseHuggingFaceConfig(text);
  SYNTRA_CHECK(HuggingFaceConfigText(again) == text);
  SYNTRA_CHECK(CanonicalModel(again.model).SerializeAsString() ==
                   CanonicalModel(config.model).SerializeAsString(),
               "{}", text);
}

std::vector<std::string> Seeds() {
  return {SourceFile("tests/golden/t5_v1_0/config.json"),
          SourceFile("tests/golden/flan_t5/config.json")};
}

}  // namespace

const Target fuzz_huggingface_config = {
    .name = "huggingface_config",
    .refusals = {ExitCode::kCheckpoint},
    .run = Run,
    .seeds = Seeds,
    .tokens = {"\"d_model\":", "\"num_layers\":", "\"feed_forward_proj\":\"gated-gelu\"", "true",
               "false", "null", "1e300", "1e-320", "2147483647", "-1", "[", "{",
               "\"dropout_rate\":0", "\"tie_word_embeddings\":", "\"scale_decoder_outputs\":"},
    .mutations = 2000};

}  // namespace syntra
