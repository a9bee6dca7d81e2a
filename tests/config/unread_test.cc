// SPDX-License-Identifier: Apache-2.0
// Settings without effect.
#include "config/unread.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "errors.h"
#include "presets.h"

namespace syntra {
namespace {

// A setting, a configuration in which it is not read, and one in which it is.
struct UnreadCase {
  std::string field, value;
  const char *unread, *read;

  // Whether `field` or a message around it is what a warning names.
  bool IsNamedBy(const std::string& path) const {
    return field == path || field.starts_with(path + ".");
  }
};

constexpr char kTask[] = "data { task { sst2 {} } }";
constexpr char kTasks[] = "data { task { sst2 {} } task { cola {} } }";
constexpr char kAdamW[] = "optimizer { kind: ADAMW }";
constexpr char kDecoder[] =
    "model { architecture: DECODER_ONLY } data { objective: CAUSAL_LM target_length: 8 }";
constexpr char kMasks[] = "model { architecture: ENCODER_MASKED_LM } data { objective: MASKED_LM }";
constexpr char kOwn[] =
    "model { encoder { layers { mixer { light_conv {} } feed_forward {} } } "
    "decoder { layers { mixer { light_conv {} } feed_forward {} } } }";
constexpr char kOwnDecoder[] = "model { decoder { layers { mixer { light_conv {} } } } }";
constexpr char kUnshared[] = "model { encoder { layers {} layers {} } }";
constexpr char kSharedWithFirst[] = "model { encoder { layers { weights: 'a' } layers {} } }";
constexpr char kSharedInGroup[] = "model { encoder { layers {} layers { repeat: 2 } } }";
constexpr char kSimple[] =
    "model { encoder { layers {} layers { mixer { attention_free { window: 0 } } } } } "
    "data { pack: false }";
constexpr char kLocal[] =
    "model { encoder { layers {} layers { mixer { attention_free {} } } } } data { pack: false }";

const UnreadCase kUnreadCases[] = {
    {"model.mixer.attention.heads", "4", kOwn, kOwnDecoder},
    {"model.decoder_mixer.light_conv.heads", "4", kOwnDecoder, ""},
    {"model.feed_forward.width", "64", kOwn, kOwnDecoder},
    {"model.relative_bias.buckets", "16", "model { mixer { light_conv {} } }", kOwnDecoder},
    {"model.dropout_noise", "PER_ELEMENT", "", "model { dropout: 0.1 }"},
    {"model.mixer.attention.index_by", "SEGMENT_POSITION", "",
     "model { mixer { attention { term { dense {} } } } }"},
    {"model.encoder.layers[1].weights", "'a'", kUnshared, kSharedWithFirst},
    {"model.encoder.layers[1].weights", "'a'", kUnshared, kSharedInGroup},
    {"model.encoder.layers[1].mixer.attention_free.max_length", "600", kSimple, kLocal},
    {"model.encoder.layers[1].mixer.attention_free.rank", "8", kSimple, kLocal},
    {"data.objective", "MASKED_LM", kTask, "model { architecture: ENCODER_MASKED_LM }"},
    {"data.train", "['x']", kTask, ""},
    {"data.validation", "['x']", kTask, ""},
    {"data.prepared", "x", kTask, ""},
    {"data.text_field", "x", kTask, ""},
    {"data.documents_per_group", "8", kTask, ""},
    {"data.noise_density", "0.2", kDecoder, kMasks},
    {"data.mean_span_length", "4", kMasks, kTask},
    {"data.target_length", "200", kDecoder, kTask},
    {"data.max_bad_fraction", "0.5", "data { on_bad_record: FAIL }", kTask},
    {"data.directory", "x", "", kTask},
    {"data.mixture.limit", "8", kTask, kTasks},
    {"optimizer.beta1", "0.5", "", kAdamW},
    {"optimizer.beta2", "0.5", "", kAdamW},
    {"optimizer.epsilon", "0.5", "", kAdamW},
    {"optimizer.weight_decay", "0.5", "", kAdamW},
    {"optimizer.decay_exponent", "0.5", kAdamW, ""},
    {"optimizer.clip_threshold", "0.5", kAdamW, ""},
    {"optimizer.min_factored_size", "8", kAdamW, ""},
    {"optimizer.schedule.final_rate", "0.1", "", "optimizer { schedule { kind: LINEAR } }"},
    {"train.max_rollbacks", "2", kTask, ""},
    {"train.profile.first_step", "8", "", "train { profile { steps: 1 } }"},
    {"train.profile.ops", "false", "", "train { profile { steps: 1 } }"},
    {"evaluation.every", "8", "", "data { validation: 'x' }"},
    {"evaluation.batches", "8", kTask, "data { validation: 'x' }"},
    {"evaluation.rank_classification", "true", "data { validation: 'x' }", kTask},
    {"evaluation.examples", "8", "data { validation: 'x' }", kTask},
    {"decoding.max_length", "8", kMasks, ""},
};

std::vector<std::string> NamedIn(const std::string& text, const UnreadCase& each) {
  const std::vector<std::string> setting = {each.field + "=" + each.value};
  std::vector<std::string> lines = UnreadSettings(ParseConfig("x", text, setting, kForModel));
  std::erase_if(lines, [&](const std::string& line) {
    return !each.IsNamedBy(line.substr(0, line.find(" has no effect: ")));
  });
  return lines;
}

TEST(Unread, SettingsAreNamedWhereTheyAreNotReadAndOnlyThere) {
  for (const UnreadCase& each : kUnreadCases) {
    EXPECT_EQ(NamedIn(each.unread, each).size(), 1u) << each.field;
    EXPECT_TRUE(NamedIn(each.read, each).empty()) << Join(NamedIn(each.read, each), "\n");
  }
}

TEST(Unread, RulesAreOfFieldsThatAreThereAndHaveCases) {
  for (const UnreadRule& rule : UnreadRules()) {
    const auto* message = rule.owner;
    for (const std::string& name : Split(rule.field, '.')) {
      const auto* field = message ? message->FindFieldByName(name) : nullptr;
      ASSERT_TRUE(field) << rule.owner->full_name() << " has no " << rule.field;
      message = field->message_type();
    }
    const bool is_of_config = rule.owner == Config::descriptor();
    EXPECT_TRUE(std::ranges::any_of(kUnreadCases,
                                    [&](const UnreadCase& each) {
                                      return is_of_config ? each.IsNamedBy(rule.field)
                                                          : each.field.ends_with("." + rule.field);
                                    }))
        << rule.owner->full_name() << " " << rule.field;
  }
}

TEST(Unread, SaysWhatAndWhy) {
  const std::vector<std::string> expected = {
      "optimizer.beta1 has no effect: ADAFACTOR does not use it"};
  EXPECT_EQ(UnreadSettings(ConfigOfText("optimizer { beta1: 0.5 beta2: 0.999 }")), expected);
}

// It is put into the model's mixer, too, which no layer has here.
TEST(Unread, TheRateOfAllAttentionIsNoMixer) {
  const std::vector<std::string> rate = {"model.attention_dropout=0.1"};
  EXPECT_TRUE(UnreadSettings(ParseConfig("x", kOwn, rate, kForModel)).empty());
}

// Models name no corpora, so their evaluations lack the split until a layer with data is added.
TEST(Unread, PresetsHaveNone) {
  for (const std::string& path : PresetPaths()) {
    Config config = LoadConfig(std::vector<std::string>{path}, {}, kForModel);
    if (config.data().task_size() == 0) config.mutable_data()->add_validation("x");
    EXPECT_EQ(Join(UnreadSettings(config), "\n"), "") << path;
  }
}

}  // namespace
}  // namespace syntra
