// SPDX-License-Identifier: Apache-2.0
// Every shipped configuration loads, protobuf reads the same from it, and its model has the
// number of parameters that is in print.
#include "presets.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "base/file.h"
#include "config/config.h"
#include "config/layer.h"
#include "model/programs.h"

namespace syntra {
namespace {

int64_t Parameters(const std::string& path, const std::vector<std::string>& overrides = {}) {
  const Config config = LoadConfig(std::vector<std::string>{path}, overrides, kForModel);
  return DeclareParameters(Model(config.model())).element_count();
}

std::string PathOf(const std::string& name) {
  return SYNTRA_SOURCE_DIR "/configs/" + name + ".textproto";
}

// In print, or what the formulas in print give for these sizes.
const std::map<std::string, int64_t>& PublishedCounts() {
  static const std::map<std::string, int64_t> sizes = {{"t5_v1_0_small", 60506624},
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
  return sizes;
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
    if (path.find("/finetune/") == std::string::npos) continue;
    const Config preset = LoadConfig(std::vector<std::string>{path}, {}, kForModel);
    if (preset.model().has_width()) continue;  // it has a model of its own
    for (const std::string& start : starts) {
      Config before;
      ASSERT_TRUE(
          google::protobuf::TextFormat::ParseFromString("model { " + start + " }", &before));
      // Not every mixer can have packed rows.
      const Config config = LoadConfigOver({"start", before.DebugString()}, std::vector{path},
                                           std::vector<std::string>{"data.pack=false"}, kForModel);
      EXPECT_EQ(config.model().dropout(), 0.1) << path;
      EXPECT_EQ(MixerKind(config.model().mixer()), MixerKind(before.model().mixer())) << path;
      EXPECT_EQ(config.model().has_cross_attention(), !before.model().has_architecture()) << path;
    }
  }
}

TEST(Presets, HaveThePublishedParameterCounts) {
  for (const auto& [name, parameters] : PublishedCounts()) {
    EXPECT_EQ(Parameters(PathOf(name)), parameters) << name;
  }
}

TEST(Presets, OfPapersAreAllInTheTable) {
  for (const std::string& path : PresetPaths()) {
    const std::filesystem::path file = path;
    if (file.parent_path().filename() != "paper") continue;
    EXPECT_TRUE(PublishedCounts().contains("paper/" + file.stem().string())) << path;
  }
}

// One gate a layer.
TEST(Presets, GatesAddTheirParameters) {
  for (const std::string name : {"paper/c4_syn_rv", "paper/c4_syn_dv"}) {
    EXPECT_EQ(Parameters(PathOf(name), {"model.mixer.attention.gate=SIGMOID"}),
              PublishedCounts().at(name) + 24);
  }
}

}  // namespace
}  // namespace syntra
