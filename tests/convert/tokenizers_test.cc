// SPDX-License-Identifier: Apache-2.0
// Which tokenizers a conversion takes for the model's own.
#include <gmock/gmock.h>

#include "base/json.h"
#include "checkpoint/layout.h"
#include "convert/convert.h"
#include "convert/sample_checkpoint.h"
#include "tests/base/error_of.h"
#include "tests/base/scratch.h"

namespace syntra {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ModelTokenizers : public ScratchTest {
 protected:
  // A model of this many rows as files of safetensors, with their tokenizer.
  Path Exported(const std::string& name, int32_t rows) const {
    ModelConfig model = SampleModel("");
    model.set_vocabulary_size(rows);
    SaveSample(scratch_ / (name + "-run"), model);
    Convert(scratch_ / (name + "-run"), scratch_ / name, kSafetensorsFormat);
    return scratch_ / name;
  }
  std::string Complaint(const Path& input, const Path& tokenizer = {}) const {
    const std::string error =
        ErrorOf([&] { Convert(input, scratch_ / "refused", kSyntraFormat, {}, tokenizer); },
                ExitCode::kData);
    EXPECT_FALSE(Exists(scratch_ / "refused"));
    return error;
  }
};

// The model says which tokenizer it was trained with.
TEST_F(ModelTokenizers, OthersAreRefused) {
  const Path out = Exported("out", 400), own = out / kTokenizerFile, kept = scratch_ / "kept.model";
  RenameDurably(own, kept);
  ReplaceFileDurably(own, ReadWholeFile(Path(SYNTRA_SOURCE_DIR) / "data/sample/spiece.model"));
  EXPECT_THAT(Complaint(out), HasSubstr("is not the one that the model was trained with"));
  std::string other = ReadWholeFile(kept);
  other[other.find("</s>") + 8] ^= 1;  // a score: a sound model of the same size
  ReplaceFileDurably(own, other);
  EXPECT_THAT(Complaint(out), HasSubstr("is not the one that the model was trained with"));
  RemoveAll(own);
  Convert(out, scratch_ / "same", kSyntraFormat, {}, kept);
}

// Earlier files do not say it. Up to 128 rows, the sample's tokens have padding.
TEST_F(ModelTokenizers, OneThatIsTooSmallIsRefused) {
  const Path given = scratch_ / "given.model";
  const auto without_tokenizer = [&](const std::string& name, int32_t rows) {
    const Path out = Exported(name, rows);
    Json json = ParseJson(ReadWholeFile(out / "model.json"));
    EXPECT_EQ(json.erase(kTokenizerAttribute), 1u);
    ReplaceFileDurably(out / "model.json", JsonText(json));
    RenameDurably(out / kTokenizerFile, given);
    return out;
  };
  Convert(without_tokenizer("padded", 128), scratch_ / "a", kSyntraFormat, {}, given);
  const Path large = without_tokenizer("large", 130);
  EXPECT_THAT(Complaint(large, given),
              AllOf(HasSubstr("given.model has "),
                    HasSubstr("but the model has rows for 130, more than padding explains")));
  RenameDurably(given, large / kTokenizerFile);
  Convert(large, scratch_ / "b", kSyntraFormat);
}

// Whatever T5Tokenizer may have: gaps need one.
TEST_F(ModelTokenizers, OneWithoutSentinelsIsNamed) {
  const Path hub = scratch_ / "hub";
  std::filesystem::copy(Golden("t5_v1_0"), hub);
  for (const char* count : {"0", "-1", "10001"}) {
    ReplaceFileDurably(hub / "tokenizer_config.json", fmt::format("{{\"extra_ids\": {}}}", count));
    EXPECT_THAT(Complaint(hub), AllOf(HasSubstr("tokenizer_config.json"),
                                      HasSubstr(fmt::format("extra_ids is {};", count))));
  }
}

}  // namespace
}  // namespace syntra
