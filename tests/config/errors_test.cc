// SPDX-License-Identifier: Apache-2.0
// Errors in configurations: what is refused, at which place, with which message.
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "base/file.h"
#include "errors.h"
#include "tests/base/error_of.h"
#include "tests/base/kinds.h"
#include "tests/base/refused_calls.h"
#include "tests/base/scratch.h"

namespace syntra {
namespace {

// The only error of `text`, without the count.
std::string OnlyError(const std::string& text) {
  const auto lines = ErrorLines(text);
  EXPECT_EQ(lines.size(), 2u) << Join(lines, "\n");
  return lines.empty() ? "" : lines[0];
}

TEST(ConfigErrors, AllAtOnceWithPlaces) {
  const auto lines = ErrorLines(
      "model {\n"
      "  witdh: 512\n"
      "  encoder_layers: twelve\n"
      "  decoder_layers: 010\n"
      "  dropout: nan\n"
      "  dropout: 0.1\n"
      "  norm_epsilon: 1e400\n"
      "  vocabulary_size: 99999999999\n"
      "  tied_embeddings: yes\n"
      "}\n"
      "optimizer { kind: ADAM epsilon: -1 }\n"
      "train { directory: 'unfinished\n"
      "  seed: -1 }\n");
  std::vector<std::string> kinds;
  for (const auto kind : EnumValues<OptimizerConfig::Kind>()) {
    kinds.push_back(OptimizerConfig::Kind_Name(kind));
  }
  const std::vector<std::string> expected = {
      "error: x:2:3: model has no field \"witdh\"; did you mean \"width\"?",
      "error: x:3:19: model.encoder_layers: expected an integer, found \"twelve\"",
      "error: x:4:19: model.decoder_layers: \"010\" starts with 0, which would mean octal; write "
      "it "
      "without leading zeros",
      "error: x:5:12: model.dropout: \"nan\" is not a finite number",
      "error: x:6:3: model.dropout: is already set on line 5",
      "error: x:7:17: model.norm_epsilon: \"1e400\" is too large or too small for a floating-point "
      "number",
      "error: x:8:20: model.vocabulary_size: \"99999999999\" is out of range; allowed are "
      "-2147483648 "
      "to 2147483647",
      "error: x:9:20: model.tied_embeddings: expected true or false, found \"yes\"",
      "error: x:11:19: optimizer.kind: \"ADAM\" is not one of " + Join(kinds, ", ") +
          "; did you mean \"ADAMW\"?",
      "error: x:11:24: optimizer.epsilon: -1 is not allowed; must be at least 1e-30",
      "error: x:12:20: the string has no closing ' on this line",
      "error: x:13:9: train.seed: \"-1\" is out of range; allowed are 0 to 18446744073709551615",
      "12 errors"};
  EXPECT_EQ(lines, expected) << Join(lines, "\n");
}

// One rule for all fields says what to write in place of a number with a unit.
TEST(ConfigErrors, NumbersWithUnits) {
  const auto value_error = [](const std::string& field, const std::string& value) {
    const std::string error = OnlyError("train { " + field + ": " + value + " }");
    const std::string start = "train." + field + ": expected ";
    const size_t found = error.find(start);
    return found == std::string::npos ? error : error.substr(found + start.size());
  };
  const std::string integer = "an integer, found ", number = "a number, found ";
  EXPECT_EQ(value_error("steps", "10k"), integer + "\"10k\"; write 10000");
  EXPECT_EQ(value_error("steps", "1.5M"), integer + "\"1.5M\"; write 1500000");
  EXPECT_EQ(value_error("steps", "1e6"), integer + "\"1e6\"; write 1000000");
  EXPECT_EQ(value_error("steps", "524_288"), integer + "\"524_288\"; write 524288");
  EXPECT_EQ(value_error("batch_size", "16.0"), integer + "\"16.0\"; write 16");
  EXPECT_EQ(value_error("batch_size", "16.5"), integer + "\"16.5\"");
  EXPECT_EQ(value_error("batch_size", "1.2.3"), integer + "\"1.2.3\"");
  EXPECT_EQ(value_error("batch_size", "50%"), integer + "\"50%\"");
  EXPECT_EQ(value_error("seed", "-1e400"), integer + "\"-1e400\"");
  EXPECT_EQ(value_error("log_every", "30s"), integer + "\"30s\"; write the number without a unit");
  EXPECT_EQ(value_error("stop_after_minutes", "2h"), number + "\"2h\"; write 120");
  EXPECT_EQ(value_error("stop_after_minutes", "1.5d"), number + "\"1.5d\"; write 2160");
  EXPECT_EQ(value_error("stop_after_minutes", "90s"), number + "\"90s\"; write 1.5");
  EXPECT_EQ(value_error("stop_after_minutes", "30min"), number + "\"30min\"; write 30");
  EXPECT_EQ(value_error("stop_after_minutes", "10k"),
            number + "\"10k\"; write the number without a unit");
  EXPECT_EQ(OnlyError("data { noise_density: 35% }"),
            "error: x:1:23: data.noise_density: expected a number, found \"35%\"; write 0.35");
}

TEST(ConfigErrors, BracesAndSeparators) {
  EXPECT_EQ(OnlyError("model {\n  width: 8\n"), "error: x:1:7: this { is never closed");
  EXPECT_EQ(OnlyError("}"), "error: x:1:1: this \"}\" closes nothing");
  EXPECT_EQ(OnlyError("model { width 8 }"),
            "error: x:1:15: model.width: expected \":\", found \"8\"");
  EXPECT_EQ(OnlyError("model { width: }"),
            "error: x:1:16: model.width: expected an integer, found \"}\"");
  EXPECT_EQ(OnlyError("model { width:\n dropout: 0 }"),
            "error: x:2:2: model.width: has no value before \"dropout\"");
  EXPECT_EQ(OnlyError("model: 5"), "error: x:1:8: model: expected { ... }, found \"5\"");
  EXPECT_EQ(OnlyError("model:\n 5"), "error: x:2:2: model: expected { ... }, found \"5\"");
  EXPECT_EQ(OnlyError("model {\n mixer:\n width: 8\n}"),
            "error: x:3:2: model.mixer: expected { ... }, found \"width\"");
  EXPECT_EQ(OnlyError("data { train: ['a' }"),
            "error: x:1:20: data.train: expected \",\" or \"]\", found \"}\"");
  EXPECT_EQ(OnlyError("model { 5 }"), "error: x:1:9: expected a field name, found \"5\"");
  EXPECT_EQ(OnlyError("data { train ['a'] }"),
            "error: x:1:14: data.train: expected \":\" before the list");
  EXPECT_EQ(OnlyError("data { train: ['a',] }"),
            "error: x:1:20: data.train: expected a value, found \"]\"");
  const std::vector<std::string> open_list = {
      "error: --set data.train=['a': data.train: this [ is never closed", "1 error"};
  EXPECT_EQ(OverrideErrorLines("data.train=['a'"), open_list);
  EXPECT_EQ(OnlyError("model { \xc3\xa9: 1 }"), "error: x:1:9: unexpected character \"\xc3\xa9\"");
  EXPECT_TRUE(ErrorLines("model < width: 8, dropout: 0.5; > # comment").empty());
}

TEST(ConfigErrors, AWrongValueIsOneError) {
  const std::vector<std::string> mixer = {
      "error: --set model.mixer=hyena: model.mixer: expected { ... }, found \"hyena\"", "1 error"};
  EXPECT_EQ(OverrideErrorLines("model.mixer=hyena"), mixer);
  const std::vector<std::string> task = {
      "error: --set data.task=sst2: data.task[0]: expected { ... }, found \"sst2\"", "1 error"};
  EXPECT_EQ(OverrideErrorLines("data.task=sst2"), task);
  const std::vector<std::string> listed = {
      "error: --set data.task=[sst2, cola]: data.task[0]: expected { ... }, found \"sst2\"",
      "error: --set data.task=[sst2, cola]: data.task[0]: expected { ... }, found \"cola\"",
      "2 errors"};
  EXPECT_EQ(OverrideErrorLines("data.task=[sst2, cola]"), listed);
  const std::vector<std::string> rest = {
      "error: --set model.width=8 9: model.width: unexpected \"9\" after the value", "1 error"};
  EXPECT_EQ(OverrideErrorLines("model.width=8 9"), rest);
  const std::vector<std::string> compared = {
      "error: --set model.width==8: unexpected character \"=\"; in files and braces write FIELD: "
      "VALUE",
      "1 error"};
  EXPECT_EQ(OverrideErrorLines("model.width==8"), compared);
  // The steps that were read before it are not checked.
  EXPECT_EQ(OverrideErrorLines("train.steps=0 train.seed=3").size(), 2u);
  const std::vector<std::string> separated = {
      "error: --set train.steps=2,000: train.steps: unexpected \",\" after the value", "1 error"};
  EXPECT_EQ(OverrideErrorLines("train.steps=2,000"), separated);
}

TEST(ConfigErrors, OtherNotationsAreOneErrorThatSaysHowToWrite) {
  EXPECT_EQ(OnlyError("model { width = 8 }"),
            "error: x:1:15: unexpected character \"=\"; in files and braces write FIELD: VALUE");
  EXPECT_EQ(OnlyError("model { width: 8 } // 5 = small\n"),
            "error: x:1:20: unexpected character \"/\"; a comment begins with #");
  for (const std::string path : {"/data/runs/a", "runs/a", "./a", "../a", "~/a", "c4-en/*.gz"}) {
    EXPECT_EQ(OnlyError("train { directory: " + path + " }"),
              "error: x:1:20: put the path \"" + path + "\" in quotes");
  }
  EXPECT_EQ(OnlyError("train { directory:runs/a }"),
            "error: x:1:19: put the path \"runs/a\" in quotes");
  EXPECT_EQ(OnlyError("train { device: CPU// the only one\n }"),
            "error: x:1:20: unexpected character \"/\"; a comment begins with #");
  const std::string dotted =
      "error: x:1:6: model: expected { ... }, found \".mixer.hyena.order\"; write model { mixer { "
      "hyena { order: ... } } }";
  EXPECT_EQ(OnlyError("model.mixer.hyena.order: 3\ntrain { steps: 5 }"), dotted);
  EXPECT_EQ(OnlyError("model.mixer.hyena.order {}"), dotted);
  EXPECT_EQ(OnlyError("optimizer { schedule.rate: 1 }"),
            "error: x:1:21: optimizer.schedule: expected { ... }, found \".rate\"; write schedule "
            "{ rate: ... }");
}

TEST(ConfigErrors, NumbersInOtherNotations) {
  EXPECT_EQ(OnlyError("model { width: +8 }"),
            "error: x:1:16: model.width: \"+8\" must be written without +");
  EXPECT_EQ(OnlyError("model { width: 0x10 }"),
            "error: x:1:16: model.width: \"0x10\" is hexadecimal; write it in decimal");
}

TEST(ConfigErrors, Bytes) {
  EXPECT_EQ(OnlyError("# caf\xe9\n"),
            "error: x:1:6: bytes that are not UTF-8; save the file as UTF-8");
  EXPECT_EQ(OnlyError("train { directory: 'caf\\351' }"),
            "error: x:1:20: train.directory: the string is not UTF-8");
  EXPECT_EQ(OnlyError("train { directory: '\\0' }"),
            "error: x:1:20: train.directory: the string holds a NUL byte");
  EXPECT_EQ(
      OnlyError("train { directory: 'a\\q' }"),
      "error: x:1:20: train.directory: unknown escape \\q in a string; a backslash is written "
      "\\\\");
  EXPECT_EQ(
      OnlyError("train { directory: 'a\\q' 'b' }"),
      "error: x:1:20: train.directory: unknown escape \\q in a string; a backslash is written "
      "\\\\");
  EXPECT_EQ(OnlyError("\xEF\xBB\xBFmodel {}"),
            "error: x:1:1: byte order mark; save the file as UTF-8 without one");
}

TEST(ConfigErrors, ColumnsCountCharacters) {
  EXPECT_EQ(OnlyError("data { text_field: '\xc3\xa9\xe2\x82\xac' pak: true }"),
            "error: x:1:25: data has no field \"pak\"; did you mean \"pack\"?");
}

// A plural, and a synonym too.
TEST(ConfigErrors, WhatWasMeantIsNamedOnce) {
  EXPECT_EQ(OnlyError("data { task { classification { name: 'n' labels: 'a' } } }"),
            "error: x:1:42: data.task[0].classification has no field \"labels\"; did you mean "
            "\"label\"?");
}

TEST(ConfigErrors, FieldOfAnotherMessage) {
  EXPECT_EQ(OnlyError("model { warmup_steps: 5 }"),
            "error: x:1:9: model has no field \"warmup_steps\"; did you mean "
            "\"optimizer.schedule.warmup_steps\"?");
}

TEST(ConfigErrors, OneKindOnly) {
  EXPECT_EQ(OnlyError("model { mixer { attention { term {\n random {}\n dense {} } } } }"),
            "error: x:3:2: model.mixer.attention.term[0].dense: only one kind can be given, and "
            "random is set on line 2");
}

TEST(ConfigErrors, DeepNestingIsRefusedWithoutRecursion) {
  std::string text = "unknown ";
  for (int i = 0; i < 200000; ++i) text += "{ a ";
  const auto lines = ErrorLines(text);
  ASSERT_EQ(lines.size(), 4u) << lines.size();
  EXPECT_EQ(lines[2], "error: x:1:261: nested deeper than 64 levels");
}

// Where each word is searched for the end of a path up to the end of the text, this takes minutes.
TEST(ConfigErrors, AMegabyteWithoutSpacesIsReadOnce) {
  std::string text;
  while (text.size() < 1 << 20) text += "a!";
  EXPECT_NE(OnlyError(text).find("this is no configuration"), std::string::npos);
}

TEST(ConfigErrors, Files) {
  const std::string large = ScratchDirectory("errors") / "large.textproto";
  ReplaceFileDurably(large, std::string((1 << 20) + 1, '\n'));
  const std::string error = ErrorOf(
      [&] {
        LoadConfig(std::vector<std::string>{"/nonexistent.textproto", large}, {}, kForModel);
      },
      ExitCode::kConfig);
  EXPECT_EQ(
      error,
      "error: cannot read /nonexistent.textproto: No such file or directory\nerror: " + large +
          ": this is no configuration (it is larger than 1 MiB); a text to learn from is "
          "named in one: data { train: \"" +
          large + "\" }\n2 errors");
}

// Who starts again may have more luck, unlike with a mistake.
TEST(ConfigErrors, ADiskThatFailsIsNoMistake) {
  const std::string file = ScratchDirectory("errors") / "good.textproto";
  ReplaceFileDurably(file, "data { tokenizer: '" + file + "' }");
  const auto load = [&] { LoadConfig(std::vector<std::string>{file}, {}, kForGeneration); };
  std::thread([&] {
    ASSERT_TRUE(RefuseCalls({SYS_access, SYS_faccessat}));
    EXPECT_NO_THROW(load());
    ASSERT_TRUE(RefuseCalls({SYS_read}));
    EXPECT_EQ(ErrorOf(load, ExitCode::kResources),
              "cannot read " + file +
                  ": Input/output error; the disk or the file server fails (dmesg may say more)");
  }).join();
}

TEST(ConfigErrors, AnEmptyPatternIsNoEmptyList) {
  const std::vector<std::string> overrides{"data.validation=", "data.train=x"};
  const std::string error =
      ErrorOf([&] { LoadConfig({}, overrides, kForModel); }, ExitCode::kConfig);
  EXPECT_NE(error.find("data.validation[0]: is empty; for none, write an empty list: "
                       "data.validation=[]"),
            std::string::npos)
      << error;
}

// One error, whatever the purpose lacks.
TEST(ConfigErrors, ATextIsNoConfiguration) {
  std::string text;
  for (int i = 0; i < 20; ++i) text += "\xe9\n";
  const std::vector<std::string> expected = {
      "error: x: this is no configuration (20 errors; line 1: bytes that are not UTF-8; save the "
      "file as UTF-8); a text to learn from is named in one: data { train: \"x\" }",
      "1 error"};
  EXPECT_EQ(ErrorLines(text, {.training_data = true}), expected);
  text.clear();
  for (int i = 0; i < 20; ++i) text += "The cat sat on the mat; it was fat!\n";
  EXPECT_EQ(ErrorLines(text, {.training_data = true}).size(), 2u);
  // Fields that are called otherwise elsewhere are named one by one.
  text.clear();
  for (int i = 0; i < 20; ++i) text += "learning_rate: 1\n";
  EXPECT_EQ(ErrorLines(text).size(), 21u);
  EXPECT_GT(ErrorLines("train { steps: 5 }" + std::string(40, '%')).size(), 10u);
}

TEST(ConfigErrors, RequiredFieldsDependOnThePurpose) {
  EXPECT_TRUE(ErrorLines("").empty());
  const auto lines = ErrorLines("data {\n validation: 'none-*.gz' }\n", kForTraining);
  const std::vector<std::string> expected = {
      "error: x:1:1: data.train: must be set", "error: x:1:1: train.directory: must be set",
      "error: x:2:2: data.validation[0]: no file matches \"none-*.gz\" (in " +
          std::filesystem::current_path().string() + ")",
      "3 errors"};
  EXPECT_EQ(lines, expected) << Join(lines, "\n");
  EXPECT_EQ(ErrorLines("data { tokenizer: '/' }", kForGeneration)[0],
            "error: x:1:8: data.tokenizer: cannot read \"/\": it is a directory");
  EXPECT_EQ(
      ErrorLines("data { tokenizer: 'none.model' }", kForGeneration)[0],
      "error: x:1:8: data.tokenizer: cannot read \"none.model\": No such file or directory (in " +
          std::filesystem::current_path().string() + ")");
}

// The path is printed whole, however long it is.
TEST(ConfigErrors, APatternWithBrackets) {
  const Path directory = ScratchDirectory("odd [names] with more than forty characters");
  ReplaceFileDurably(directory / "a.txt", "a\n");
  const auto lines_of = [](const Path& pattern) {
    return ErrorLines("data { train: '" + pattern.string() + "' }", {.training_data = true});
  };
  const Path pattern = directory / "*.txt";
  const auto lines = lines_of(pattern);
  ASSERT_EQ(lines.size(), 2u) << Join(lines, "\n");
  EXPECT_EQ(lines[0], "error: x:1:8: data.train[0]: no file matches \"" + pattern.string() +
                          "\"; [ begins a set of characters, write [[] for itself");
  EXPECT_TRUE(lines_of(directory.parent_path() / "odd [[]names]*/*.txt").empty());
}

TEST(ConfigErrors, AMisspeltRequiredFieldIsReportedOnce) {
  const auto lines = ErrorLines("train { directry: 'a' }", {.run = true});
  EXPECT_EQ(lines.size(), 2u) << Join(lines, "\n");
}

TEST(ConfigErrors, MadeInMemory) {
  Config config;
  config.mutable_model()->set_dropout(2);
  const std::string error = ErrorOf([&] { ValidateConfig(config, kForModel); }, ExitCode::kConfig);
  EXPECT_EQ(error,
            "error: configuration: model.dropout: 2 is not allowed; must be at least 0, at most "
            "0.99\n1 error");
}

}  // namespace
}  // namespace syntra
