// SPDX-License-Identifier: Apache-2.0
// Exported models in other programs: a T5 in transformers, its beams too, Synthesizers in torch.
// SYNTRA_PYTHON names the Python that has them.
#include <gmock/gmock.h>

#include <cstdlib>

#include "checkpoint/process.h"
#include "convert/beams.h"
#include "convert/convert.h"
#include "convert/running_model.h"
#include "convert/sample_checkpoint.h"
#include "tests/base/scratch.h"

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
  // The answers of one process, since torch takes seconds to start: one for each model asked about.
  Json Run(const char* script, const Json& asked) const {
    const Path input = scratch_ / "input.json", output = scratch_ / "output.json";
    ReplaceFileDurably(input, JsonText(asked));
    const Path program = Path(SYNTRA_SOURCE_DIR) / "tests/interop" / script;
    const int status = RunProcess({python_, program.string(), input.string(), output.string()},
                                  scratch_ / "errors");
    EXPECT_EQ(status, 0) << ReadWholeFile(scratch_ / "errors");
    return status == 0 ? ParseJson(ReadWholeFile(output)) : Json();
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

Json AllOnes() { return std::vector(2, std::vector(DecoderIds()[0].size(), 1)); }

// T5 v1.0's shape, or v1.1's.
ModelConfig Shape(const std::string& version) {
  ModelConfig shape = SampleModel("");
  if (version == "v1.1") {
    shape.set_tied_embeddings(false);
    shape.mutable_feed_forward()->set_activation(FeedForwardConfig::GATED_GELU);
  }
  return shape;
}

// The logits and greedy texts of `run` are those that transformers found.
void ExpectSame(const Json& answer, const Path& run, const std::vector<std::string>& texts) {
  EXPECT_TRUE(answer.at("missing").empty()) << answer.at("missing");
  EXPECT_TRUE(answer.at("unexpected").empty()) << answer.at("unexpected");
  StoredModel model = kSyntraFormat.open(run, {});
  const Tokenizer tokenizer("tokenizer", model.tokenizer, model.config.data().extra_ids());
  Json inputs = answer;
  inputs["decoder_ids"] = DecoderIds();
  inputs["decoder_segments"] = AllOnes();
  const TrialBatch batch = BatchOf(inputs);
  Running running(std::move(model));
  const double distance = Distance(answer.at("logits"), running.Logits(batch));
  EXPECT_LE(distance, 1e-4);
  auto greedy = running.Greedy(batch, kNewTokens);
  for (size_t row = 0; row < greedy.size(); ++row) {
    std::vector<int32_t> ids = tokenizer.EncodeWithSentinels(texts[row]);
    ids.push_back(tokenizer.eos_id());
    ids.resize(batch.shape.input_length, 0);
    EXPECT_EQ(Json(ids), answer.at("encoder_ids")[row]);
    EXPECT_EQ(Json(greedy[row]), answer.at("greedy_ids")[row]);
    // The text without what transformers calls special.
    std::erase_if(greedy[row], [&](int32_t id) {
      return id == tokenizer.unknown_id() || id >= tokenizer.piece_count();
    });
    EXPECT_EQ(Json(tokenizer.Decode(greedy[row])), answer.at("greedy_text")[row]);
  }
  fmt::print("transformers {}, {}: largest difference of logits {:.1e}; greedy: \"{}\"\n",
             std::string(answer.at("version")), std::string(answer.at("tokenizer")), distance,
             std::string(answer.at("greedy_text")[0]));
}

TEST_F(Interop, TransformersLoadsAnExportedT5) {
  if (const std::string lacks = Lacks("torch, transformers, sentencepiece, google.protobuf");
      !lacks.empty()) {
    GTEST_SKIP() << lacks;
  }
  const std::vector<std::string> texts = {"the cat sat on the mat",
                                          "a big dog <extra_id_0> and saw <extra_id_1>"};
  const std::vector<std::string> versions = {"v1.0", "v1.1"};
  Json asked = Json::array();
  for (const std::string& version : versions) {
    const Path exported = scratch_ / (version + "-exported");
    SaveSample(scratch_ / version, Shape(version), 2);
    Convert(scratch_ / version, exported, kHuggingFaceFormat);
    asked.push_back({{"model", exported.string()},
                     {"texts", texts},
                     {"decoder_ids", DecoderIds()},
                     {"new_tokens", kNewTokens}});
  }
  const Json answers = Run("run_transformers.py", asked);
  ASSERT_EQ(answers.size(), versions.size());
  for (size_t i = 0; i < versions.size(); ++i) {
    const testing::ScopedTrace trace(__FILE__, __LINE__, versions[i]);
    ExpectSame(answers[i], scratch_ / versions[i], texts);
  }
}

TEST_F(Interop, BeamsOfAnExportedT5AreThoseOfTransformers) {
  if (const std::string lacks = Lacks("torch, transformers"); !lacks.empty()) {
    GTEST_SKIP() << lacks;
  }
  const std::vector<std::string> versions = {"v1.0", "v1.1"};
  Json settings = Json::array(), asked = Json::array();
  for (const double alpha : {0.0, 0.6, 2.0}) {
    for (const bool early_stopping : {false, true}) {
      settings.push_back(
          {{"size", 4}, {"alpha", alpha}, {"outputs", 2}, {"early_stopping", early_stopping}});
    }
  }
  for (const std::string& version : versions) {
    const Path exported = scratch_ / (version + "-exported");
    SaveSample(scratch_ / version, Shape(version), 2);
    Convert(scratch_ / version, exported, kHuggingFaceFormat);
    asked.push_back({{"model", exported.string()},
                     {"end_id", 11},
                     {"longest", 8},
                     {"inputs", {{5, 21, 14, 1}, {40, 3, 9, 22, 7, 1}}},
                     {"settings", settings}});
  }
  const Json answer = Run("run_beams.py", asked);
  ASSERT_EQ(answer.at("models").size(), versions.size());
  for (size_t i = 0; i < versions.size(); ++i) {
    const testing::ScopedTrace trace(__FILE__, __LINE__, versions[i]);
    Running running(kSyntraFormat.open(scratch_ / versions[i], {}));
    const BeamCount count = ExpectSameBeams(answer.at("models")[i], running);
    fmt::print(
        "transformers {}: {} searches alike; without a penalty {} of {} best outputs are "
        "those of its generate\n",
        std::string(answer.at("versions").at("transformers")), count.searches,
        count.as_transformers, count.ranked_alike);
  }
}

// What is said of padding means nothing. `logits` are those of each input.
void ClearPadding(const TrialBatch& batch, std::vector<double>* logits) {
  const size_t vocabulary = logits->size() / batch.encoder_segments.size();
  for (size_t i = 0; i < logits->size(); ++i) {
    if (batch.encoder_segments[i / vocabulary] == 0) (*logits)[i] = 0;
  }
}

TEST_F(Interop, TorchRunsEveryExportedModel) {
  if (const std::string lacks = Lacks("torch, safetensors"); !lacks.empty()) {
    GTEST_SKIP() << lacks;
  }
  const std::vector<std::vector<int32_t>> ids = {{4, 8, 15, 16, 23, 42, 1}, {5, 6, 7, 1, 0, 0, 0}};
  const std::vector<std::vector<int32_t>> segments = {{1, 1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 0, 0, 0}};
  Json asked = Json::array();
  std::map<std::string, ModelConfig> models = TrialModels();
  models["dynamic_conv_of_one_head"] = TinyModel("dynamic_conv { kernel_size: 5 heads: 1 }");
  models["relative_bias_term"] = TinyModel(
      "attention { heads: 2 head_size: 8 relative_bias: false term { dot_product {} } "
      "term { relative_bias { buckets: 8 max_distance: 12 } } }");
  for (auto& [name, model] : models) {
    const Path exported = scratch_ / (name + "-exported");
    model.set_vocabulary_size(SampleModel("").vocabulary_size());
    SaveSample(scratch_ / name, model, 2);
    Convert(scratch_ / name, exported, kSafetensorsFormat);
    asked.push_back({{"model", exported.string()},
                     {"encoder_ids", ids},
                     {"encoder_segments", segments},
                     {"decoder_ids", DecoderIds()},
                     {"decoder_segments", AllOnes()}});
  }
  const Json answers = Run("read_safetensors.py", asked);
  ASSERT_EQ(answers.size(), asked.size());
  size_t at = 0;
  for (const auto& [name, model] : models) {
    Running running(kSyntraFormat.open(scratch_ / name, {}));
    const TrialBatch batch = BatchOf(asked[at]);
    std::vector<double> logits = running.Logits(batch);
    if (model.architecture() == ModelConfig::ENCODER_MASKED_LM) ClearPadding(batch, &logits);
    const double distance = Distance(answers[at].at("logits"), logits);
    EXPECT_LE(distance, 1e-4) << name;
    fmt::print("{}: largest difference of logits {:.1e}\n", name, distance);
    ++at;
  }
}

}  // namespace
}  // namespace syntra
