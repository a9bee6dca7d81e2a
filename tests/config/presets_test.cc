// SPDX-License-Identifier: Apache-2.0
// Every shipped configuration loads and has the published number of parameters.
#include "presets.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <map>

#include "base/file.h"
#include "config/layer.h"
#include "configs/schema/kind_of.h"
#include "errors.h"

namespace syntra {
namespace {

// Parameters of one self-attention, from the sizes in its configuration (no biases anywhere).
int64_t AttentionParameters(const AttentionConfig& attention, int64_t width) {
  const int64_t inner = int64_t{attention.heads()} * attention.head_size();
  const int64_t matrix = width * inner;
  const int64_t shared = attention.key_value_heads() == 0
                             ? matrix
                             : width * attention.key_value_heads() * attention.head_size();
  bool dot_product = attention.term_size() == 0;
  for (const ScoreTerm& term : attention.term()) dot_product |= term.has_dot_product();
  int64_t count = matrix + shared + (dot_product ? matrix + shared : 0);
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

// Queries, keys, values and an output of as many columns.
template <typename Mixer>
int64_t HeadsParameters(const Mixer& mixer, int64_t width) {
  return 4 * width * mixer.heads() * mixer.head_size();
}

// Two matrices between the positions and the hidden units, each with a bias.
int64_t MlpParameters(const MlpConfig& mlp) {
  const int64_t units = mlp.width(), positions = mlp.max_length();
  return 2 * units * positions + units + positions;
}

int64_t GatedMlpParameters(const GatedMlpConfig& mlp, int64_t width) {
  const int64_t units = mlp.width(), half = units / 2, positions = mlp.max_length();
  const int64_t attention = (3 * width + half) * mlp.attention_size();
  return width * units + units + 2 * half + mlp.heads() * positions * (positions + 1) +
         half * width + width + attention;
}

// A row of the sorting matrix for each head and block.
int64_t SinkhornParameters(const SinkhornConfig& sinkhorn, int64_t width) {
  const int64_t blocks = (sinkhorn.max_length() - 1) / sinkhorn.block_size() + 1;
  return HeadsParameters(sinkhorn, width) + width * sinkhorn.heads() * blocks;
}

// No keys, but a fixed rotation for each head and round.
int64_t ReformerParameters(const ReformerConfig& reformer, int64_t width) {
  const int64_t inner = int64_t{reformer.heads()} * reformer.head_size();
  return 3 * width * inner + inner * reformer.rounds() * reformer.buckets() / 2;
}

int64_t RetentionParameters(const RetentionConfig& retention, int64_t width) {
  return width * retention.heads() * (2 * retention.head_size() + 3 * retention.value_size());
}

int64_t AttentionFreeParameters(const AttentionFreeConfig& free, int64_t width) {
  return 4 * width * free.width() + 2 * int64_t{free.max_length()} * free.rank();
}

// Without the filters of later positions, which only an encoder has.
int64_t HyenaParameters(const HyenaConfig& hyena, int64_t width, bool ahead) {
  const int64_t units = hyena.filter_width(), columns = (hyena.order() + 1) * width;
  const int64_t network = units + (1 + 2 * hyena.bands()) * units + 2 * units * units + 3 * units +
                          units * (hyena.order() - 1) * width;
  return (width + 1 + hyena.kernel_size() + 1) * columns + (hyena.order() - 1) * width +
         (width + 1) * width + (ahead ? 2 : 1) * network;
}

int64_t MixerParameters(const MixerConfig& mixer, int64_t width, bool encoder) {
  switch (mixer.kind_case()) {
    case MixerConfig::kFourier:
      return 0;
    case MixerConfig::kLinformer:
      return HeadsParameters(mixer.linformer(), width) +
             2 * mixer.linformer().projected_length() * mixer.linformer().max_length();
    case MixerConfig::kMlp:
      return MlpParameters(mixer.mlp());
    case MixerConfig::kGatedMlp:
      return GatedMlpParameters(mixer.gated_mlp(), width);
    case MixerConfig::kLocalAttention:
      return HeadsParameters(mixer.local_attention(), width);
    case MixerConfig::kBigBird:
      return HeadsParameters(mixer.big_bird(), width);
    case MixerConfig::kSinkhorn:
      return SinkhornParameters(mixer.sinkhorn(), width);
    case MixerConfig::kReformer:
      return ReformerParameters(mixer.reformer(), width);
    case MixerConfig::kLinearAttention:
      return HeadsParameters(mixer.linear_attention(), width);
    case MixerConfig::kPerformer:
      return HeadsParameters(mixer.performer(), width) +
             mixer.performer().head_size() * mixer.performer().features();
    case MixerConfig::kRetention:
      return RetentionParameters(mixer.retention(), width);
    case MixerConfig::kAttentionFree:
      return AttentionFreeParameters(mixer.attention_free(), width);
    case MixerConfig::kHyena:
      return HyenaParameters(mixer.hyena(), width, encoder);
    default:
      break;
  }
  if (mixer.has_light_conv()) return ConvolutionParameters(mixer.light_conv(), false, width);
  if (mixer.has_dynamic_conv()) return ConvolutionParameters(mixer.dynamic_conv(), true, width);
  return AttentionParameters(mixer.attention(), width);
}

int64_t BiasParameters(const ModelConfig& model, const MixerConfig& mixer) {
  const bool local = mixer.has_local_attention() && mixer.local_attention().relative_bias();
  const bool adds = mixer.has_attention() && mixer.attention().relative_bias();
  const int64_t heads = local  ? mixer.local_attention().heads()
                        : adds ? mixer.attention().heads()
                               : 0;
  return model.relative_bias().buckets() * heads;
}

struct Layers {
  int64_t count;       // with parameters of their own
  int64_t recurrence;  // parameters of signals and halting
};

// The list, or so many that are alike.
Layers CountLayers(const StackConfig& list, int64_t alike, int64_t width) {
  Layers layers{list.layers_size() == 0 ? alike : 0, 0};
  for (const LayerConfig& group : list.layers()) {
    const RecurrenceConfig& recurrence = group.recurrence();
    layers.count += group.has_recurrence() ? 1 : group.repeat();
    if (recurrence.step_signal() == RecurrenceConfig::LEARNED) {
      layers.recurrence += group.repeat() * width;
    }
    if (recurrence.has_halting()) layers.recurrence += width + 1;
  }
  return layers;
}

int64_t Parameters(const ModelConfig& model) {
  const int64_t width = model.width();
  const MixerConfig& mixer = model.mixer();
  const MixerConfig& decoder = model.has_decoder_mixer() ? model.decoder_mixer() : mixer;
  const CrossAttentionConfig& attention = model.cross_attention();
  const int64_t shared_heads =
      attention.key_value_heads() == 0 ? attention.heads() : attention.key_value_heads();
  const int64_t cross = 2 * width * (attention.heads() + shared_heads) * attention.head_size();
  const bool gated = model.feed_forward().activation() == FeedForwardConfig::GATED_GELU;
  const int64_t hidden = model.feed_forward().width();
  const int64_t biases = model.feed_forward().bias() ? (gated ? 2 : 1) * hidden + width : 0;
  const int64_t feed_forward = (gated ? 3 : 2) * width * hidden + biases;
  const int64_t norm = (model.norm() == ModelConfig::LAYER_NORM ? 2 : 1) * width;
  const int64_t last = model.norm_placement() == ModelConfig::BEFORE ? 2 * norm : 0;
  const Layers encoders = CountLayers(model.encoder(), model.encoder_layers(), width),
               decoders = CountLayers(model.decoder(), model.decoder_layers(), width);
  const int64_t embedding = model.vocabulary_size() * width;
  const int64_t positions =
      model.positions().has_learned() ? model.positions().learned().max_length() * width : 0;
  return (model.tied_embeddings() ? 1 : 2) * embedding + positions +
         encoders.count * (MixerParameters(mixer, width, true) + feed_forward + 2 * norm) +
         decoders.count *
             (MixerParameters(decoder, width, false) + cross + feed_forward + 3 * norm) +
         encoders.recurrence + decoders.recurrence + last + BiasParameters(model, mixer) +
         BiasParameters(model, decoder);
}

TEST(Presets, LoadAndAgreeWithProtobuf) {
  const auto paths = PresetPaths();
  EXPECT_GE(paths.size(), 13u);
  for (const std::string& path : paths) {
    const Config config = LoadConfig(std::vector<std::string>{path}, {}, kForModel);
    Config other;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(ReadWholeFile(path), &other)) << path;
    if (other.model().has_attention_dropout()) SpreadAttentionDropout(other.mutable_model());
    EXPECT_EQ(config.SerializeAsString(), other.SerializeAsString()) << path;
    EXPECT_EQ(config.train().directory().empty(), !config.has_model()) << path;
  }
}

// What they say of the model fits every kind of model that can learn tasks, and changes no sizes.
TEST(Presets, ThoseOfTasksFitEveryStart) {
  const std::string starts[] = {
      "", "mixer { light_conv { heads: 4 } } encoder_layers: 3",
      "mixer { linformer {} } decoder_mixer { local_attention {} }",
      "architecture: DECODER_ONLY mixer { retention {} } decoder_layers: 3",
      "architecture: ENCODER_ONLY mixer { attention { heads: 4 } } classifier {}"};
  for (const std::string& path : PresetPaths()) {
    if (path.find("/finetune/") == std::string::npos || path.ends_with("ag_news.textproto"))
      continue;
    for (const std::string& start : starts) {
      Config before;
      ASSERT_TRUE(
          google::protobuf::TextFormat::ParseFromString("model { " + start + " }", &before));
      // Not every mixer can have packed rows.
      const Config config = LoadConfigOver({"start", before.DebugString()}, std::vector{path},
                                           std::vector<std::string>{"data.pack=false"}, kForModel);
      EXPECT_EQ(config.model().dropout(), 0.1) << path;
      EXPECT_EQ(KindOf(config.model().mixer()),
                before.model().has_mixer() ? KindOf(before.model().mixer()) : "attention")
          << path;
      EXPECT_EQ(config.model().has_cross_attention(), !before.model().has_architecture()) << path;
    }
  }
}

TEST(Presets, HaveThePublishedParameterCounts) {
  const std::map<std::string, int64_t> counts = {{"t5_v1_0_small", 60506624},
                                                 {"t5_v1_0_base", 222903552},
                                                 {"t5_v1_0_large", 737668096},
                                                 {"t5_v1_0_3b", 2851598336},
                                                 {"t5_v1_1_small", 76961152},
                                                 {"t5_v1_1_base", 247577856},
                                                 {"t5_v1_1_large", 783150080},
                                                 {"paper/c4_transformer", 222903552},
                                                 {"paper/c4_syn_r", 254360576},
                                                 {"paper/c4_syn_d", 224476160},
                                                 {"paper/c4_syn_rv", 292109312},
                                                 {"paper/c4_syn_dv", 243350528},
                                                 {"paper/c4_syn_fr", 207174656},
                                                 {"paper/c4_lightconv", 223693824},
                                                 {"paper/c4_dynamicconv", 256662528},
                                                 {"paper/c4_linformer", 224476032},
                                                 {"paper/c4_fourier", 194591616},
                                                 {"paper/c4_mlp", 199320960},
                                                 {"paper/c4_gated_mlp", 263582208},
                                                 {"paper/c4_local_attention", 222903552},
                                                 {"paper/c4_big_bird", 222903168},
                                                 {"paper/c4_sinkhorn", 224672256},
                                                 {"paper/c4_reformer", 215972736},
                                                 {"paper/c4_linear_attention", 222902784},
                                                 {"paper/c4_performer", 223296000},
                                                 {"paper/c4_retention", 279525888},
                                                 {"paper/c4_attention_free", 226048512},
                                                 {"paper/c4_hyena", 225365760},
                                                 {"paper/c4_multi_query", 183975168},
                                                 {"paper/c4_universal", 41197058},
                                                 {"transformer_2017_base", 60551168}};
  for (const auto& [name, count] : counts) {
    const std::string path = SYNTRA_SOURCE_DIR "/configs/" + name + ".textproto";
    const Config config = LoadConfig(std::vector<std::string>{path}, {}, kForModel);
    EXPECT_EQ(Parameters(config.model()), count) << name;
  }
}

}  // namespace
}  // namespace syntra
