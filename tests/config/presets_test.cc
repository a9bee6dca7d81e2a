// SPDX-License-Identifier: Apache-2.0
// Every shipped configuration loads and has the published number of parameters.
#include "presets.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <map>

#include "base/file.h"
#include "errors.h"

namespace syntra {
namespace {

// Parameters of one self-attention, from the sizes in its configuration (no biases anywhere).
int64_t AttentionParameters(const AttentionConfig& attention, int64_t width) {
  const int64_t inner = int64_t{attention.heads()} * attention.head_size();
  const int64_t matrix = width * inner;
  bool dot_product = attention.term_size() == 0;
  for (const ScoreTerm& term : attention.term()) dot_product |= term.has_dot_product();
  int64_t count = 2 * matrix + (dot_product ? 2 * matrix : 0);
  for (const ScoreTerm& term : attention.term()) {
    if (term.has_random()) {
      const int64_t n = term.random().max_length();
      count += attention.heads() * n * n;
    } else if (term.has_factorized_random()) {
      const auto& random = term.factorized_random();
      count += 2 * int64_t{random.rank()} * attention.heads() * random.max_length();
    } else if (term.has_dense()) {
      if (!dot_product || !term.dense().share_query()) count += matrix;
      count += int64_t{attention.head_size()} * term.dense().max_length();
    }
  }
  return count;
}

int64_t Parameters(const ModelConfig& model) {
  const int64_t width = model.width();
  const AttentionConfig& attention = model.mixer().attention();
  const AttentionConfig& decoder =
      model.has_decoder_mixer() ? model.decoder_mixer().attention() : attention;
  const int64_t cross =
      4 * width * model.cross_attention().heads() * model.cross_attention().head_size();
  const bool gated = model.feed_forward().activation() == FeedForwardConfig::GATED_GELU;
  const int64_t feed_forward = (gated ? 3 : 2) * width * model.feed_forward().width();
  const int64_t embedding = model.vocabulary_size() * width;
  return (model.tied_embeddings() ? 1 : 2) * embedding +
         model.encoder_layers() *
             (AttentionParameters(attention, width) + feed_forward + 2 * width) +
         model.decoder_layers() *
             (AttentionParameters(decoder, width) + cross + feed_forward + 3 * width) +
         2 * width + model.relative_bias().buckets() * int64_t{attention.heads() + decoder.heads()};
}

TEST(Presets, LoadAndAgreeWithProtobuf) {
  const auto paths = PresetPaths();
  EXPECT_GE(paths.size(), 13u);
  for (const std::string& path : paths) {
    const Config config = LoadConfig(std::vector<std::string>{path}, {}, kForModel);
    Config other;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(ReadWholeFile(path), &other)) << path;
    EXPECT_EQ(config.SerializeAsString(), other.SerializeAsString()) << path;
    EXPECT_EQ(config.train().directory().empty(), !config.has_model()) << path;
  }
}

TEST(Presets, HaveThePublishedParameterCounts) {
  const std::map<std::string, int64_t> counts = {
      {"t5_v1_0_small", 60506624},         {"t5_v1_0_base", 222903552},
      {"t5_v1_0_large", 737668096},        {"t5_v1_1_small", 76961152},
      {"t5_v1_1_base", 247577856},         {"t5_v1_1_large", 783150080},
      {"paper/c4_transformer", 222903552}, {"paper/c4_syn_r", 254360576},
      {"paper/c4_syn_d", 224476160},       {"paper/c4_syn_rv", 292109312},
      {"paper/c4_syn_dv", 243350528},      {"paper/c4_syn_fr", 207174656}};
  for (const auto& [name, count] : counts) {
    const std::string path = SYNTRA_SOURCE_DIR "/configs/" + name + ".textproto";
    const Config config = LoadConfig(std::vector<std::string>{path}, {}, kForModel);
    EXPECT_EQ(Parameters(config.model()), count) << name;
  }
}

}  // namespace
}  // namespace syntra
