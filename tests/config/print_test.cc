// SPDX-License-Identifier: Apache-2.0
// Text forms, differences, digest, explanations.
#include "config/print.h"

#include <gtest/gtest.h>

#include "config/explain.h"
#include "errors.h"
#include "presets.h"
#include "tests/base/error_of.h"

namespace syntra {
namespace {

TEST(Print, MinimalLeavesDefaultsOut) {
  EXPECT_EQ(MinimalConfigText(ConfigOfText("model { width: 512 dropout: 0 } train { seed: 2 }")),
            "train {\n  seed: 2\n}\n");
  EXPECT_EQ(
      MinimalConfigText(
          ConfigOfText("model { mixer { attention { term { random { max_length: 512 } "
                       "} } } }")),
      "model {\n  mixer {\n    attention {\n      term {\n        random {\n        }\n      }\n"
      "    }\n  }\n}\n");
}

// Runs and checkpoints of version 0.1 hold them; they are printed as they are called now.
TEST(Print, FormerNamesOfValuesAreReadButNotPrinted) {
  EXPECT_EQ(MinimalConfigText(ConfigOfText("train { recompute: true }")),
            "train {\n  recompute: LAYERS\n}\n");
  EXPECT_EQ(MinimalConfigText(ConfigOfText("train { recompute: false }")), "");
  EXPECT_NE(Join(ErrorLines("train { recompute: yes }"), "")
                .find("\"yes\" is not one of NOTHING, FEED_FORWARD, LAYERS"),
            std::string::npos);
}

TEST(Print, BothFormsReadBackAsTheSame) {
  for (const std::string& path : PresetPaths()) {
    const Config config = LoadConfig(std::vector<std::string>{path}, {}, kForModel);
    const std::string minimal = MinimalConfigText(config);
    EXPECT_EQ(MinimalConfigText(ConfigOfText(minimal)), minimal) << path;
    EXPECT_EQ(MinimalConfigText(ConfigOfText(FullConfigText(config))), minimal) << path;
    EXPECT_TRUE(ConfigDifferences(config, ConfigOfText(FullConfigText(config))).empty()) << path;
  }
}

// A layer's network is its own even if it says what a network is anyway; without one the layer has
// the model's.
TEST(Print, ALayerKeepsItsNetwork) {
  const std::string text =
      "model {\n  feed_forward {\n    width: 64\n  }\n  encoder {\n    layers {\n      "
      "feed_forward {\n      }\n    }\n    layers {\n    }\n  }\n}\n";
  const Config config = ConfigOfText(text);
  EXPECT_EQ(MinimalConfigText(config), text);
  EXPECT_EQ(MinimalConfigText(ConfigOfText(FullConfigText(config))), text);
  const std::vector<std::string> expected = {
      "model.encoder.layers[0].feed_forward.width: 2048 -> 1024"};
  EXPECT_EQ(ConfigDifferences(config,
                              ConfigOfText("model { feed_forward { width: 64 } encoder { layers { "
                                           "feed_forward { width: 1024 } } layers {} } }")),
            expected);
}

TEST(Print, FullNamesEveryDefault) {
  const std::string full = FullConfigText(Config());
  for (const char* line : {"width: 512", "kind: ADAFACTOR", "warmup_steps: 10000", "pack: true",
                           "epsilon: 1e-08", "directory: \"\""}) {
    EXPECT_NE(full.find(line), std::string::npos) << line;
  }
}

TEST(Print, DifferencesCompareValuesNotPresence) {
  const Config a = ConfigOfText("model { width: 512 }"), b = ConfigOfText("model { dropout: 0.1 }");
  const std::vector<std::string> expected = {"model.dropout: 0 -> 0.1"};
  EXPECT_EQ(ConfigDifferences(a, b), expected);
  const std::vector<std::string> added = {"data.train[0]: (none) -> \"f\""};
  EXPECT_EQ(ConfigDifferences(a, ConfigOfText("data { train: 'f' }")), added);
}

TEST(Print, ThereIsOneZero) {
  const std::string halting = "model { encoder { layers { recurrence { halting { bias: ";
  EXPECT_EQ(ConfigDigest(ConfigOfText(halting + "-0.0 } } } } }")),
            ConfigDigest(ConfigOfText(halting + "0 } } } } }")));
  EXPECT_TRUE(ConfigDifferences(ConfigOfText("model { dropout: -0 }"), Config()).empty());
}

TEST(Print, DigestIsOfTheMeaning) {
  const std::string digest = ConfigDigest(ConfigOfText("model { width: 512 }"));
  EXPECT_EQ(digest.size(), 32u);
  EXPECT_EQ(digest, ConfigDigest(Config()));
  EXPECT_NE(digest, ConfigDigest(ConfigOfText("model { width: 514 }")));
  // A model that names no mixer has attention.
  const Config named = ConfigOfText("model { mixer { attention { heads: 8 } } }");
  EXPECT_EQ(digest, ConfigDigest(named));
  EXPECT_TRUE(ConfigDifferences(Config(), named).empty());
}

TEST(Explain, FieldsMessagesAndEnums) {
  EXPECT_EQ(ExplainField("optimizer.schedule.warmup_steps"),
            "optimizer.schedule.warmup_steps\n"
            "  type     int64\n"
            "  default  10000\n"
            "  rule     at least 0, at most 1000000000000\n"
            "  Steps in which the rate rises linearly from 0; with RSQRT, steps of constant\n"
            "  rate.\n"
            "  Also known as: warmup, num_warmup_steps, warm_up, warmup_iters,\n"
            "  warmup_updates, lr_warmup\n"
            "  Instead of warmup_ratio: a number of steps, not a share of them\n"
            "  Changing it when a run continues: allowed, and the log says what becomes of\n"
            "  the learning rate\n");
  const std::string kind = ExplainField("optimizer.schedule.kind");
  EXPECT_NE(
      kind.find("    COSINE        after the same rise, falling from rate to final_rate along\n"),
      std::string::npos)
      << kind;
  EXPECT_NE(ExplainField("model.mixer.attention.term").find("table R[h, i, j]"), std::string::npos);
  EXPECT_TRUE(ExplainField("model.mixer.attention.term[1].random.max_length")
                  .starts_with("model.mixer.attention.term.random.max_length\n"));
  EXPECT_EQ(ExplainField("warmup_steps"), ExplainField("optimizer.schedule.warmup_steps"));
}

TEST(Explain, SuggestsForUnknownFields) {
  const std::string error = ErrorOf([&] { ExplainField("model.witdh"); }, ExitCode::kConfig);
  EXPECT_EQ(error, "model has no field \"witdh\"; did you mean \"width\"?");
}

}  // namespace
}  // namespace syntra
