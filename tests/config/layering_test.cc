// SPDX-License-Identifier: Apache-2.0
// Merging of several configuration files and --set.
#include <gtest/gtest.h>

#include "base/file.h"
#include "config/print.h"
#include "errors.h"
#include "tests/base/error_of.h"
#include "tests/base/scratch.h"

namespace syntra {
namespace {

std::string Write(const std::string& name, const std::string& text) {
  static const Path directory = ScratchDirectory("layering");
  const Path path = directory / name;
  ReplaceFileDurably(path, text);
  return path;
}

Config Load(const std::vector<std::string>& files, const std::vector<std::string>& overrides) {
  return LoadConfig(files, overrides, kForModel);
}

TEST(Layering, ScalarsReplaceMessagesMergeListsReplace) {
  const std::string a = Write("a.textproto",
                              "model { width: 64 dropout: 0.5 } data { train: ['p', 'q'] }\n"
                              "optimizer { schedule { rate: 0.5 warmup_steps: 10 } }");
  const std::string b = Write("b.textproto",
                              "model { width: 32 } data { train: 'r' }\n"
                              "optimizer { schedule { rate: 0.25 } }");
  const Config config = Load({a, b}, {});
  EXPECT_EQ(config.model().width(), 32);
  EXPECT_EQ(config.model().dropout(), 0.5);
  EXPECT_EQ(config.optimizer().schedule().rate(), 0.25);
  EXPECT_EQ(config.optimizer().schedule().warmup_steps(), 10);
  ASSERT_EQ(config.data().train_size(), 1);
  EXPECT_EQ(config.data().train(0), "r");
  EXPECT_EQ(Load({a}, {"data.train=[]"}).data().train_size(), 0);
}

TEST(Layering, TermsAndKindsReplace) {
  const std::string a = Write(
      "terms.textproto",
      "model { mixer { attention { heads: 4 term { random {} } term { dot_product {} } } } }");
  const Config config =
      Load({a}, {"model { mixer { attention { term { dense { bias: true } } } } }"});
  const AttentionConfig& attention = config.model().mixer().attention();
  EXPECT_EQ(attention.heads(), 4);
  ASSERT_EQ(attention.term_size(), 1);
  EXPECT_TRUE(attention.term(0).dense().bias());
}

TEST(Layering, OverridesOfEveryKind) {
  const Config config =
      Load({}, {"optimizer.schedule.rate=0.01", "optimizer.schedule.kind = COSINE",
                "train.directory=runs/a b", "data.tokenizer='t.model'", "data.train=[\"a\",\"b\"]",
                "data.validation=v*.gz", "train.seed=18446744073709551615", "data.pack=false",
                "model { width: 32 }", "model.feed_forward={ width: 8 activation: GATED_GELU }"});
  EXPECT_EQ(config.optimizer().schedule().rate(), 0.01);
  EXPECT_EQ(config.optimizer().schedule().kind(), ScheduleConfig::COSINE);
  EXPECT_EQ(config.train().directory(), "runs/a b");
  EXPECT_EQ(config.data().tokenizer(), "t.model");
  EXPECT_EQ(config.data().train_size(), 2);
  EXPECT_EQ(config.data().validation(0), "v*.gz");
  EXPECT_EQ(config.train().seed(), 18446744073709551615u);
  EXPECT_FALSE(config.data().pack());
  EXPECT_EQ(config.model().width(), 32);
  EXPECT_EQ(config.model().feed_forward().activation(), FeedForwardConfig::GATED_GELU);
}

TEST(Layering, SpacesInATextAreKept) {
  const auto directory = [](const std::string& assignment) {
    return Load({}, {assignment}).train().directory();
  };
  EXPECT_EQ(directory("train.directory= a "), " a ");
  EXPECT_EQ(directory("train.directory = a "), "a");
  EXPECT_EQ(directory("train.directory = ' a '"), " a ");
  EXPECT_EQ(directory("train.directory= ' a '"), " a ");
  EXPECT_EQ(Load({}, {"train.steps= 7 "}).train().steps(), 7);
}

TEST(Layering, LaterOverridesWin) {
  EXPECT_EQ(Load({}, {"train.steps=5", "train.steps=7"}).train().steps(), 7);
}

TEST(Layering, ErrorsNameTheLayerThatSetTheField) {
  const std::string a = Write("first.textproto", "train { steps: 5\n batch_size: 0 }");
  const std::string b = Write("second.textproto", "train { steps: 0 }");
  const std::string error = ErrorOf(
      [&] {
        Load({a, b}, {"model.dropout=3", "model.witdh=3", "nonsense", "model..width=1", "=3"});
      },
      ExitCode::kConfig);
  EXPECT_EQ(error,
            "error: --set model.witdh=3: model has no field \"witdh\"; did you mean \"width\"?\n"
            "error: --set nonsense: expected FIELD=VALUE, e.g. --set train.steps=1000\n"
            "error: --set model..width=1: model has no field \"\"\n"
            "error: --set =3: expected FIELD=VALUE, e.g. --set train.steps=1000\n"
            "error: --set model.dropout=3: model.dropout: 3 is not allowed; must be at least 0, at "
            "most 0.99\n"
            "error: " +
                b +
                ":1:9: train.steps: 0 is not allowed; must be greater than 0, at most "
                "1000000000000\n"
                "error: " +
                a +
                ":2:2: train.batch_size: 0 is not allowed; must be greater than 0, at most "
                "1048576\n"
                "7 errors");
}

// Rather where the message is written, or else where the file begins.
TEST(Layering, MissingFieldsAreNotBlamedOnOverridesOfOthers) {
  const auto error_of = [](const std::string& file, const std::vector<std::string>& overrides) {
    try {
      LoadConfig(std::vector{file}, overrides, {.training_data = true, .run = true});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string with = Write("with.textproto", "model {}\ndata { pack: true }\n"),
                    without = Write("without.textproto", "model {}\n");
  const std::vector<std::string> others = {"data.prepared=a", "train.steps=5"};
  EXPECT_EQ(error_of(with, others), "error: " + with +
                                        ":1:1: train.directory: must be set\nerror: " + with +
                                        ":2:1: data.train: must be set\n2 errors");
  EXPECT_EQ(error_of(without, others), "error: " + without +
                                           ":1:1: data.train: must be set\nerror: " + without +
                                           ":1:1: train.directory: must be set\n2 errors");
  // What empties the field itself is to blame, and so is what writes the message alone.
  EXPECT_EQ(error_of(with, {"data.train=[]", "train.directory="}),
            "error: --set data.train=[]: data.train: must be set\nerror: --set train.directory=: "
            "train.directory: must be set\n2 errors");
  EXPECT_EQ(error_of(without, {"data.train=/", "data.train=[]", "train={ steps: 5 }"}),
            "error: --set data.train=[]: data.train: must be set\nerror: --set train={ steps: 5 }: "
            "train.directory: must be set\n2 errors");
}

TEST(Layering, AttentionDropoutStandsForTheRatesOfEveryAttention) {
  const auto model_of = [](const std::string& text, const std::vector<std::string>& overrides) {
    return Load({Write("model.textproto", "model { " + text + " }")}, overrides).model();
  };
  const std::vector<std::string> rate = {"model.attention_dropout=0.1"};
  const ModelConfig plain = model_of("", rate);
  EXPECT_EQ(plain.mixer().attention().dropout(), 0.1);
  EXPECT_EQ(plain.cross_attention().dropout(), 0.1);
  EXPECT_FALSE(plain.has_attention_dropout());  // so that checkpoints say what they always said
  const ModelConfig kinds = model_of(
      "mixer { light_conv {} } decoder_mixer { local_attention {} } "
      "encoder { layers { mixer { reformer {} } } layers { repeat: 2 } } positions { sinusoidal {} "
      "}",
      rate);
  EXPECT_EQ(kinds.mixer().light_conv().weight_dropout(), 0);
  EXPECT_EQ(kinds.decoder_mixer().local_attention().dropout(), 0.1);
  EXPECT_EQ(kinds.encoder().layers(0).mixer().reformer().dropout(), 0.1);
  EXPECT_FALSE(kinds.encoder().layers(1).has_mixer());
  const ModelConfig decoder =
      model_of("architecture: DECODER_ONLY", {rate[0], "data.objective=CAUSAL_LM"});
  EXPECT_EQ(decoder.mixer().attention().dropout(), 0.1);
  EXPECT_FALSE(decoder.has_cross_attention());

  // It replaces what lies below; a rate beside it or above it counts.
  const std::string own = "mixer { attention { dropout: 0.3 } } cross_attention { dropout: 0.4 }";
  EXPECT_EQ(model_of(own, rate).mixer().attention().dropout(), 0.1);
  EXPECT_EQ(model_of(own, rate).cross_attention().dropout(), 0.1);
  const ModelConfig beside = model_of(own + " attention_dropout: 0.1", {});
  EXPECT_EQ(beside.mixer().attention().dropout(), 0.3);
  EXPECT_EQ(model_of("attention_dropout: 0.1", {"model.cross_attention.dropout=0"})
                .cross_attention()
                .dropout(),
            0);
  EXPECT_EQ(model_of(own, {"model.attention_dropout=0"}).mixer().attention().dropout(), 0);
  EXPECT_EQ(ConfigDigest(Load({}, {"model.attention_dropout=0"})), ConfigDigest(Config()));
}

TEST(Layering, AModelKeepsTheMixersOfItsStart) {
  const std::string file =
      Write("task.textproto", "model {\n  mixer { attention { dropout: 0.1 } }\n}\n");
  const auto load_over = [&](const std::string& start) {
    return LoadConfigOver({"the model of runs/a", "model { " + start + " }"}, std::vector{file}, {},
                          kForModel);
  };
  const Config kept = load_over("mixer { attention { heads: 2 } } encoder_layers: 3");
  EXPECT_EQ(kept.model().mixer().attention().heads(), 2);
  EXPECT_EQ(kept.model().mixer().attention().dropout(), 0.1);
  EXPECT_EQ(load_over("encoder_layers: 3").model().encoder_layers(), 3);  // attention by default
  const std::string error =
      ErrorOf([&] { load_over("mixer { light_conv { heads: 2 } }"); }, ExitCode::kConfig);
  EXPECT_EQ(error, "error: " + file +
                       ":2:3: model.mixer is attention, but the model of runs/a has "
                       "light_conv (model.mixer); leave model.mixer out, and it is that of "
                       "the start\n1 error");
}

TEST(Layering, OverridesOfAFieldInsideAListElement) {
  const std::string a = Write("elements.textproto",
                              "model { mixer { attention {\n term { random {} }\n"
                              " term { dense { bias: true } } } } }");
  const std::string term = "model.mixer.attention.term";
  const Config config =
      Load({a}, {term + "[1].dense.max_length=600", term + "[0].random.per_head=false",
                 term + "[1].dense.max_length=700"});
  const AttentionConfig& attention = config.model().mixer().attention();
  ASSERT_EQ(attention.term_size(), 2);
  EXPECT_EQ(attention.term(1).dense().max_length(), 700);
  EXPECT_TRUE(attention.term(1).dense().bias());
  EXPECT_FALSE(attention.term(0).random().per_head());
  const struct {
    std::string assignment, message;
  } wrong[] = {
      {term + "[2].dense.bias=true",
       "term[2]: there is no such element: the list has 2 (0 and 1); set the whole list, or a "
       "field of an existing element"},
      {term + "[-1].dense.bias=true",
       "term[-1]: there is no such element: the list has 2 (0 and 1)"},
      {term + "[0].dense.bias=true", "this element is random, not dense"},
      {term + "[x].dense.bias=true", "term[x]: there is no such element: the list has 2 (0 and 1)"},
      {term + "[0]=5",
       "term[0]: an element cannot be set as a whole; set a field of it, or the whole list"},
      {"model[0].width=5", "model is not a list"},
      {"data.train[0]=x", "data.train is a list; set the whole list"},
      {term + "[0].random.max_length=5", "max_length 5 is shorter than data.input_length"}};
  for (const auto& [assignment, message] : wrong) {
    try {
      Load({a}, {assignment});
      ADD_FAILURE() << assignment;
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_TRUE(text.starts_with("error: --set " + assignment)) << text;
      EXPECT_NE(text.find(message), std::string::npos) << text;
    }
  }
}

// That the required field lacks a value, too, is not a second mistake.
TEST(Layering, MessagesInsideAListElementMerge) {
  const std::string a = Write("merged.textproto",
                              "model { mixer { attention { term { dense { bias: true } } } } }\n"
                              "data { task { classification { name: 'n' label: ['a', 'b'] } } }");
  const Config config =
      Load({a}, {"model.mixer.attention.term[0].dense={ max_length: 600 }",
                 "data.task[0].classification={ label: ['x', 'y', 'z'] metric: 'f1' }",
                 "data.task[0].classification.metric=['macro_f1']"});
  const DenseTerm& dense = config.model().mixer().attention().term(0).dense();
  EXPECT_EQ(dense.max_length(), 600);
  EXPECT_TRUE(dense.bias());
  const ClassificationTask& task = config.data().task(0).classification();
  EXPECT_EQ(task.name(), "n");
  EXPECT_EQ(task.label_size(), 3);
  ASSERT_EQ(task.metric_size(), 1);
  EXPECT_EQ(task.metric(0), "macro_f1");
}

TEST(Layering, AWrongOverrideOfARequiredFieldIsOneError) {
  for (const char* assignment : {"data.train[0]=x", "data.train.x=y", "data.train=[x]"}) {
    EXPECT_EQ(OverrideErrorLines(assignment, {.training_data = true}).size(), 2u) << assignment;
  }
  for (const char* assignment : {"train.directory=\xff", "train.directory.x=y"}) {
    EXPECT_EQ(OverrideErrorLines(assignment, {.run = true}).size(), 2u) << assignment;
  }
}

TEST(Layering, PathsThroughListsAreExplained) {
  const auto lines = OverrideErrorLines("model.mixer.attention.term.random.max_length=5");
  EXPECT_NE(lines[0].find("model.mixer.attention.term is a list; set the whole list"),
            std::string::npos)
      << lines[0];
  EXPECT_NE(OverrideErrorLines("model.width.x=5")[0].find("model.width has no fields"),
            std::string::npos);
}

}  // namespace
}  // namespace syntra
