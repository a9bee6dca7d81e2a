// SPDX-License-Identifier: Apache-2.0
// Seeded mutations of the shipped configurations: nothing crashes, errors name a place, and what is
// accepted means the same to protobuf's own parser and survives printing and parsing.
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <random>

#include "base/file.h"
#include "config/print.h"
#include "errors.h"
#include "presets.h"

namespace syntra {
namespace {

class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text.empty()) text = fmt::format("{}:{}: {}", line + 1, column + 1, message);
  }
  std::string text;
};

std::string Mutate(const std::string& seed_text, const std::vector<std::string>& seeds,
                   std::mt19937* random) {
  static const std::vector<std::string> kPieces = {
      "{",      "}",           "<",        ">",        "[",
      "]",      ":",           ",",        ";",        "#",
      "\"",     "'",           "\\",       "\n",       "-",
      "nan",    "inf",         "010",      "0x1",      "1e400",
      "1e-400", "99999999999", "\xff",     "\xc3\xa9", std::string(1, '\0'),
      "model",  "term",        "width: 8", "{}",       "true",
      "3.5",    "\\x41",       "\\777",    "a\"b",     "RELU",
      "+1",     "\t",          "1.",       ".5",       "5.e1",
      "\r\n",   "_",           "t",        "0",        "00",
      "1f"};
  const auto below = [&](size_t n) { return n ? (*random)() % n : 0; };
  std::string text = seed_text;
  for (int edits = 1 + below(4); edits > 0; --edits) {
    const size_t place = below(text.size() + 1);
    const size_t length = below(std::min<size_t>(text.size() - place, 12) + 1);
    switch (below(6)) {
      case 0:
        text.erase(place, length);
        break;
      case 1:
        text.insert(place, kPieces[below(kPieces.size())]);
        break;
      case 2:
        text.replace(place, length, kPieces[below(kPieces.size())]);
        break;
      case 3:
        if (place < text.size()) text[place] ^= static_cast<char>(1 << below(8));
        break;
      case 4:
        text.insert(below(text.size() + 1), text.substr(place, 1 + below(60)));
        break;
      default: {
        const std::string& other = seeds[below(seeds.size())];
        text = text.substr(0, place) + other.substr(below(other.size()));
      }
    }
  }
  return text;
}

// "error: x:LINE:COLUMN: ..."
bool NamesAPlace(const std::string& line) {
  int row = 0, column = 0;
  return std::sscanf(line.c_str(), "error: x:%d:%d:", &row, &column) == 2 && row > 0 && column > 0;
}

TEST(Mutation, RefusalsNamePlacesAndAcceptedTextMeansTheSameToProtobuf) {
  std::vector<std::string> seeds;
  for (const std::string& path : PresetPaths()) seeds.push_back(ReadWholeFile(path));
  std::mt19937 random(20251120);
  int accepted = 0;
  constexpr int kMutations = 20000;
  for (int i = 0; i < kMutations; ++i) {
    const std::string text = Mutate(seeds[i % seeds.size()], seeds, &random);
    Config config;
    try {
      config = ParseConfig("x", text, {}, kForModel);
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ExitCode::kConfig) << text;
      const auto lines = Split(error.what(), '\n');
      ASSERT_GE(lines.size(), 2u);
      for (size_t k = 0; k + 1 < lines.size(); ++k) {
        ASSERT_TRUE(NamesAPlace(lines[k]) || lines[k].starts_with("(only")) << lines[k] << text;
      }
      continue;
    }
    ++accepted;
    FirstError protobuf_error;
    google::protobuf::TextFormat::Parser parser;
    parser.RecordErrorsTo(&protobuf_error);
    Config other;
    ASSERT_TRUE(parser.ParseFromString(text, &other)) << protobuf_error.text << "\n" << text;
    ASSERT_EQ(config.SerializeAsString(), other.SerializeAsString()) << text;
    const std::string minimal = MinimalConfigText(config);
    ASSERT_EQ(MinimalConfigText(ParseConfig("x", minimal, {}, kForModel)), minimal) << text;
  }
  EXPECT_GT(accepted, kMutations / 50);
  EXPECT_LT(accepted, kMutations);
}

TEST(Mutation, OverridesAreAppliedOrRefused) {
  const std::vector<std::string> seeds = {"train.steps=1000",
                                          "optimizer.schedule.kind=COSINE",
                                          "data.train=[\"a\",\"b\"]",
                                          "model.mixer={ attention { term { random {} } } }",
                                          "model { width: 8 }",
                                          "train.directory='runs/a'",
                                          "model.mixer.attention.term[0].random.max_length=600"};
  std::mt19937 random(20251121);
  const std::vector<std::string> files = {SYNTRA_SOURCE_DIR "/configs/paper/c4_syn_rv.textproto"};
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::string text = Mutate(seeds[i % seeds.size()], seeds, &random);
    Config config;
    try {
      config = LoadConfig(files, std::vector<std::string>{text}, kForModel);
    } catch (const Error& error) {
      const std::string lines = error.what();
      // A change of the data can also make a table of the file too short.
      ASSERT_TRUE(lines.starts_with("error: --set ") || lines.starts_with("error: " + files[0]))
          << text;
      continue;
    }
    ++accepted;
    const std::string minimal = MinimalConfigText(config);
    ASSERT_EQ(MinimalConfigText(ParseConfig("x", minimal, {}, kForModel)), minimal) << text;
  }
  EXPECT_GT(accepted, 400);
}

}  // namespace
}  // namespace syntra
