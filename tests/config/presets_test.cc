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

// Of Mesh TensorFlow's form: two gates, a separable convolution with a bias, an output; dynamic
// filters are a projection with bias for each tap.
int64_t ConvolutionParameters(const ConvolutionConfig& convolution, bool dynamic, int64_t width) {
  const int64_t matrix = width * width + width;
  return 4 * matrix + width + convolution.kernel_size() * (dynamic ? matrix : width);
}

int64_t MixerParameters(const MixerConfig& mixer, int64_t width) {
  if (mixer.has_light_conv()) return ConvolutionParameters(mixer.light_conv(), false, width);
  if (mixer.has_dynamic_conv()) return ConvolutionParameters(mixer.dynamic_conv(), true, width);
  return AttentionParameters(mixer.attention(), width);
}

int64_t BiasParameters(const ModelConfig& model, const MixerConfig& mixer) {
  const bool adds = mixer.has_attention() && mixer.attention().relative_bias();
  return adds ? int64_t{model.relative_bias().buckets()} * mixer.attention().heads() : 0;
}

int64_t Parameters(const ModelConfig& model) {
  const int64_t width = model.width();
  const MixerConfig& mixer = model.mixer();
  const MixerConfig& decoder = model.has_decoder_mixer() ? model.decoder_mixer() : mixer;
  const int64_t cross =
      4 * width * model.cross_attention().heads() * model.cross_attention().head_size();
  const bool gated = model.feed_forward().activation() == FeedForwardConfig::GATED_GELU;
  const int64_t hidden = model.feed_forward().width();
  const int64_t biases = model.feed_forward().bias() ? (gated ? 2 : 1) * hidden + width : 0;
  const int64_t feed_forward = (gated ? 3 : 2) * width * hidden + biases;
  const int64_t norm = (model.norm() == ModelConfig::LAYER_NORM ? 2 : 1) * width;
  const int64_t last = model.norm_placement() == ModelConfig::BEFORE ? 2 * norm : 0;
  const int64_t embedding = model.vocabulary_size() * width;
  const int64_t positions =
      model.positions().has_learned() ? model.positions().learned().max_length() * width : 0;
  return (model.tied_embeddings() ? 1 : 2) * embedding + positions +
         model.encoder_layers() * (MixerParameters(mixer, width) + feed_forward + 2 * norm) +
         model.decoder_layers() *
             (MixerParameters(decoder, width) + cross + feed_forward + 3 * norm) +
         last + BiasParameters(model, mixer) + BiasParameters(model, decoder);
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
      {"paper/c4_syn_dv", 243350528},      {"paper/c4_syn_fr", 207174656},
      {"paper/c4_lightconv", 223693824},   {"paper/c4_dynamicconv", 256662528},
      {"transformer_2017_base", 60551168}};
  for (const auto& [name, count] : counts) {
    const std::string path = SYNTRA_SOURCE_DIR "/configs/" + name + ".textproto";
    const Config config = LoadConfig(std::vector<std::string>{path}, {}, kForModel);
    EXPECT_EQ(Parameters(config.model()), count) << name;
  }
}

}  // namespace
}  // namespace syntra
