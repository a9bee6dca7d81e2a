// SPDX-License-Identifier: Apache-2.0
// Exported models in other programs: a T5 in transformers, Synthesizers in torch. SYNTRA_PYTHON
// names the Python that has them.
#include <gmock/gmock.h>

#include <cstdlib>

#include "checkpoint/process.h"
#include "convert/convert.h"
#include "convert/running_model.h"
#include "convert/sample_checkpoint.h"
#include "convert/scratch.h"

namespace syntra {
namespace {

constexpr int64_t kNewTokens = 12;

class Interop : public ScratchTest {
 protected:
  // Empty, or why the test cannot run.
  std::string Lacks(const std::string& modules) const {
    if (RunProcess({python_, "-c", "import " + modules}, scratch_ / "errors") == 0) return "";
    return fmt::format("{} cannot import {}; set SYNTRA_PYTHON", python_, modules);
  }
  Json Run(const char* script, const Path& model, const Json& input) const {
    const Path asked = scratch_ / "input.json", answer = scratch_ / "output.json";
    ReplaceFileDurably(asked, JsonText(input));
    const Path program = Path(SYNTRA_SOURCE_DIR) / "tests/interop" / script;
    const int status =
        RunProcess({python_, program.string(), model.string(), asked.string(), answer.string()},
                   scratch_ / "errors");
    EXPECT_EQ(status, 0) << ReadWholeFile(scratch_ / "errors");
    return status == 0 ? ParseJson(ReadWholeFile(answer, int64_t{1} << 30)) : Json();
  }
  const char* chosen_ = std::getenv("SYNTRA_PYTHON");
  const std::string python_ = chosen_ ? chosen_ : "python3";
};

// The largest difference, where the decoder has tokens.
double Distance(const Json& logits, const std::vector<double>& found) {
  double worst = 0;
  size_t at = 0;
  for (const Json& row : logits) {
    for (const Json& position : row) {
      for (const Json& logit : position) {
        worst = std::max(worst, std::abs(logit.get<double>() - found.at(at++)));
      }
    }
  }
  EXPECT_EQ(at, found.size());
  return worst;
}

std::vector<std::vector<int32_t>> DecoderIds() {
  return {{0, 5, 21, 14, 8, 11, 66, 7}, {0, 40, 3, 9, 2, 77, 4, 1}};
}

TEST_F(Interop, TransformersLoadsAnExportedT5) {
  if (const std::string lacks = Lacks("torch, transformers, sentencepiece"); !lacks.empty()) {
    GTEST_SKIP() << lacks;
  }
  for (const std::string name : {"v1.0", "v1.1"}) {
    const Path run = scratch_ / name, exported = scratch_ / (name + "-exported");
    ModelConfig shape = SampleModel("");
    if (name == "v1.1") {
      shape.set_tied_embeddings(false);
      shape.mutable_feed_forward()->set_activation(FeedForwardConfig::GATED_GELU);
    }
    SaveSample(run, shape, 2);
    Convert(run, exported, kHuggingFaceFormat);
    const std::vector<std::string> texts = {"the cat sat on the mat",
                                            "a big dog <extra_id_0> and saw <extra_id_1>"};
    const Json answer =
        Run("run_transformers.py", exported,
            {{"texts", texts}, {"decoder_ids", DecoderIds()}, {"new_tokens", kNewTokens}});
    ASSERT_FALSE(answer.is_null());
    EXPECT_TRUE(answer.at("missing").empty()) << answer.at("missing");
    EXPECT_TRUE(answer.at("unexpected").empty()) << answer.at("unexpected");

    StoredModel model = kSyntraFormat.open(run, {});
    const Tokenizer tokenizer("tokenizer", model.tokenizer, 12);
    Json asked = answer;
    asked["decoder_ids"] = DecoderIds();
    asked["decoder_segments"] = Json(std::vector(2, std::vector(DecoderIds()[0].size(), 1)));
    const TrialBatch batch = BatchOf(asked);
    Running running(std::move(model));
    const double distance = Distance(answer.at("logits"), running.Logits(batch));
    EXPECT_LE(distance, 1e-4) << name;
    auto greedy = running.Greedy(batch, kNewTokens);
    for (size_t row = 0; row < greedy.size(); ++row) {
      EXPECT_EQ(Json(greedy[row]), answer.at("greedy_ids")[row]) << name;
      // The text without what transformers calls special.
      std::erase_if(greedy[row], [&](int32_t id) {
        return id == tokenizer.unknown_id() || id >= tokenizer.piece_count();
      });
      std::vector<int32_t> ids = tokenizer.EncodeWithSentinels(texts[row]);
      ids.push_back(tokenizer.eos_id());
      ids.resize(batch.shape.input_length, 0);
      EXPECT_EQ(Json(ids), answer.at("encoder_ids")[row]) << name;
      EXPECT_EQ(tokenizer.Decode(greedy[row]), answer.at("greedy_text")[row]) << name;
    }
    fmt::print("{}: transformers {}, {}; largest difference of logits {:.1e}; greedy: \"{}\"\n",
               name, std::string(answer.at("version")), std::string(answer.at("tokenizer")),
               distance, std::string(answer.at("greedy_text")[0]));
  }
}

TEST_F(Interop, TorchRunsExportedSynthesizers) {
  if (const std::string lacks = Lacks("torch, safetensors"); !lacks.empty()) {
    GTEST_SKIP() << lacks;
  }
  for (const auto& [name, mixer] : TrialMixers()) {
    const Path run = scratch_ / name, exported = scratch_ / (name + "-exported");
    SaveSample(run, SampleModel(mixer), 2);
    Convert(run, exported, kSafetensorsFormat);
    const std::vector<std::vector<int32_t>> inputs = {{4, 8, 15, 16, 23, 42, 1},
                                                      {5, 6, 7, 1, 0, 0, 0}};
    Json asked = {
        {"encoder_ids", inputs},
        {"encoder_segments", {{1, 1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 0, 0, 0}}},
        {"decoder_ids", DecoderIds()},
        {"decoder_segments", Json(std::vector(2, std::vector(DecoderIds()[0].size(), 1)))}};
    const Json answer = Run("read_safetensors.py", exported, asked);
    ASSERT_FALSE(answer.is_null()) << name;
    Running running(kSyntraFormat.open(run, {}));
    const double distance = Distance(answer.at("logits"), running.Logits(BatchOf(asked)));
    EXPECT_LE(distance, 1e-4) << name;
    fmt::print("{}: largest difference of logits {:.1e}\n", name, distance);
  }
}

}  // namespace
}  // namespace syntra
