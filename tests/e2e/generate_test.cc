// SPDX-License-Identifier: Apache-2.0
// The commands that use a trained model on lines: generate, score.
#include "base/text.h"
#include "tests/e2e/tiny_run.h"

namespace syntra {
namespace {

using Generate = TinyRun;
using Score = TinyRun;

std::string TooLong() {
  std::string line = "<extra_id_0>";
  for (int i = 0; i < 100; ++i) line += " aa";
  return line;
}

TEST_F(Generate, ALineForALine) {
  Train("run", {"train.steps=6"});
  const Arguments generate{"generate", "--checkpoint", Directory("run").string()};
  const std::string too_long = TooLong();
  const Outcome outcome =
      Run(generate, {.input = "aa ba <extra_id_0> ca\n\n" + too_long + "\nno gap, w\xc3\xb6rds\n" +
                              too_long + "\nno end of line <extra_id_1>"});
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  const std::vector<std::string> lines = Split(outcome.out, '\n');
  ASSERT_EQ(lines.size(), 7u) << outcome.out;
  EXPECT_TRUE(lines[0].starts_with("aa ba ")) << outcome.out;
  EXPECT_EQ(lines[1], "");
  EXPECT_EQ(lines[2], "");
  EXPECT_EQ(lines[3], "no gap, w\xc3\xb6rds");
  EXPECT_EQ(lines[4], "");
  EXPECT_TRUE(lines[5].starts_with("no end of line")) << outcome.out;
  for (const char* number : {"3", "5"}) {
    EXPECT_TRUE(outcome.Says(
        fmt::format("error: line {} of the input has 102 tokens, but the model reads 32", number)))
        << outcome.err;
  }
  EXPECT_EQ(Run(generate, {.input = ""}).out, "");
  // The advice to add --raw is for those who have not.
  for (const bool raw : {false, true}) {
    Arguments empty_lines = generate;
    if (raw) empty_lines.push_back("--raw");
    const Outcome empty = Run(empty_lines, {.input = "\n"});
    EXPECT_EQ(empty.out, "\n");
    EXPECT_EQ(empty.Says("no line has a gap"), !raw) << empty.err;
  }
}

// The tokenizer would read other characters in their place, and the answer would be that to them.
TEST_F(Generate, LinesThatAreNoTextAreRefused) {
  Train("run", {"train.steps=6"});
  const std::string checkpoint = Directory("run").string();
  const Outcome filled = Run({"generate", "--checkpoint", checkpoint},
                             {.input = "aa \xff <extra_id_0>\nba <extra_id_0>\n\xff\n"});
  EXPECT_EQ(filled.code, 3);
  EXPECT_TRUE(
      filled.Says("error: line 1 of the input is bad: text is not well-formed UTF-8; an "
                  "empty line"))
      << filled.err;
  EXPECT_TRUE(filled.Says("error: line 3 of the input is bad")) << filled.err;
  EXPECT_TRUE(filled.out.starts_with("\nba")) << filled.out;
  EXPECT_TRUE(filled.out.ends_with("\n\n")) << filled.out;
  const Outcome scored = Run({"score", "--checkpoint", checkpoint},
                             {.input = "aa\tba\naa\tb" + std::string(1, '\0') + "a\n"});
  EXPECT_EQ(scored.code, 3);
  EXPECT_TRUE(scored.Says("error: line 2 of the input is bad: text contains a NUL character"))
      << scored.err;
}

// A line's answer does not follow from its neighbours, nor from how its bytes arrive.
TEST_F(Generate, InBatchesAsAlone) {
  Train("run", {"train.steps=6"});
  std::string input, alone;
  const auto generate = [&](const std::string& lines) {
    return Run({"generate", "--raw", "--checkpoint", Directory("run").string()}, {.input = lines});
  };
  for (int i = 0; i < 40; ++i) {
    input += fmt::format("a{} <extra_id_0>", static_cast<char>('a' + i % 3));
    for (int j = 0; j < i % 25; ++j) input += fmt::format(" {}a", static_cast<char>('a' + j));
    input += i % 2 == 0 ? " <extra_id_1>\n" : "\n";
  }
  const auto lines = Split(input, '\n'), together = Split(generate(input).out, '\n');
  ASSERT_EQ(together.size(), 41u);
  for (const size_t i : {0, 17, 39}) {
    EXPECT_EQ(generate(lines[i] + "\n").out, together[i] + "\n") << lines[i];
  }
}

TEST_F(Generate, ByEachStrategy) {
  Train("run", {"train.steps=6"});
  const auto generate = [&](const Arguments& more) {
    Arguments arguments{"generate", "--checkpoint", Directory("run").string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Run(arguments, {.input = "aa <extra_id_0> ca\n\n" + TooLong() + "\n"});
  };
  const std::vector<std::string> plain = Split(generate({"--raw"}).out, '\n');
  for (const std::string strategy : {"greedy", "beam", "sample"}) {
    Arguments options{"--raw", "--json", "--strategy", strategy};
    if (strategy != "greedy") options.insert(options.end(), {"--set", "decoding.outputs=3"});
    const Outcome outcome = generate(options);
    EXPECT_EQ(outcome.code, 3) << outcome.err;
    EXPECT_EQ(outcome.out, generate(options).out);
    const std::vector<std::string> lines = Split(outcome.out, '\n');
    ASSERT_EQ(lines.size(), 4u) << outcome.out;
    const Json gap = ParseJson(lines[0]), empty = ParseJson(lines[1]), bad = ParseJson(lines[2]);
    EXPECT_EQ(gap.at("input"), "aa <extra_id_0> ca");
    // A beam gives those that have ended.
    const size_t outputs = gap.at("outputs").size();
    ASSERT_GE(outputs, strategy == "sample" ? 3u : 1u) << lines[0];
    ASSERT_LE(outputs, strategy == "greedy" ? 1u : 3u) << lines[0];
    double before = 0;
    for (const Json& output : gap.at("outputs")) {
      EXPECT_LT(output.at("log_probability").get<double>(), 0);
      EXPECT_LE(output.at("score").get<double>(), before);
      before = output.at("score");
    }
    if (strategy == "greedy") {
      EXPECT_EQ(gap.at("outputs")[0].at("text"), plain[0]);
    }
    EXPECT_EQ(empty.at("outputs")[0].at("text"), "");
    EXPECT_EQ(empty.at("outputs")[0].at("log_probability"), 0);
    EXPECT_TRUE(bad.at("outputs").empty());
    EXPECT_TRUE(bad.at("error").get<std::string>().starts_with("line 3 of the input has"));
  }
  const auto expect_refused = [&](const Arguments& options, const std::string& message) {
    const Outcome outcome = generate(options);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_TRUE(outcome.Says(message)) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  };
  expect_refused({"--strategy", "beem"}, "beem not in {beam,greedy,sample}");
  expect_refused({"--set", "decoding.beam.size=0"}, "must be greater than 0");
  expect_refused({"--set", "decoding.sample.top_p=2"}, "greater than 0, at most 1");
  expect_refused({"--set", "decoding.sample={}", "--set", "decoding.outputs=2"}, "add --json");
  expect_refused({"--strategy", "beam", "--set", "decoding.outputs=5"},
                 "a beam of 4 does not give 5 outputs");
  expect_refused({"--strategy", "beam", "--set", "decoding.sample.top_k=2"},
                 "--set chooses decoding.sample");
  const Outcome samples = generate({"--samples", "2", "--json"});
  EXPECT_EQ(samples.code, 2);
  EXPECT_EQ(ParseJson(samples.out).at("errors").at(0).at("message"),
            "--samples shows examples to people; remove --json");
}

TEST_F(Score, ANumberForATarget) {
  Train("run", {"train.steps=6"});
  const auto score = [&](const std::string& lines) {
    return Run({"score", "--checkpoint", Directory("run").string()}, {.input = lines});
  };
  const std::string a = "aa <extra_id_0> ca\t<extra_id_0> ba", b = "ba ca\tda da da";
  const Outcome outcome =
      score(a + "\nno tab\n" + b + "\n" + a + "\tda\taa aa\n\t\nx\t" + TooLong());
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  EXPECT_TRUE(outcome.Says("line 2 of the input has no tab")) << outcome.err;
  EXPECT_TRUE(outcome.Says("line 6 of the input has a target of")) << outcome.err;
  const std::vector<std::string> lines = Split(outcome.out, '\n');
  ASSERT_EQ(lines.size(), 7u) << outcome.out;
  EXPECT_EQ(lines[1], "");
  EXPECT_LT(std::stod(lines[4]), 0);  // nothing of nothing: its EOS
  EXPECT_EQ(lines[5], "");
  const std::vector<std::string> several = Split(lines[3], '\t');
  ASSERT_EQ(several.size(), 3u);
  EXPECT_NEAR(std::stod(several[0]), std::stod(lines[0]), 1e-4);
  EXPECT_NEAR(std::stod(score(b).out), std::stod(lines[2]), 1e-4);
}

TEST_F(Generate, RefusesSegmentPositions) {
  Train("run", {"train.steps=6", "model.mixer.attention.index_by=SEGMENT_POSITION"});
  const Outcome outcome =
      Run({"generate", "--checkpoint", Directory("run").string()}, {.input = "aa\n"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(outcome.Says("index_by: SEGMENT_POSITION cannot generate")) << outcome.err;
  EXPECT_EQ(outcome.out, "");
}

}  // namespace
}  // namespace syntra
