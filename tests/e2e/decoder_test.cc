// SPDX-License-Identifier: Apache-2.0
// Models without an encoder as users meet them: they learn, go on with texts, score, continue,
// spread over ranks, are exported and finetuned; and what is refused.
#include <gmock/gmock.h>

#include <random>
#include <set>

#include "base/text.h"
#include "checkpoint/read.h"
#include "tests/e2e/tiny_run.h"

namespace syntra {
namespace {

using testing::HasSubstr;

constexpr const char* kModel = R"(
  architecture: DECODER_ONLY
  decoder_layers: 2
  mixer { attention { heads: 2 head_size: 16 } }
)";

class DecoderRun : public TinyRun {
 protected:
  void SetUp() override {
    TinyRun::SetUp();
    WriteConfig(kModel, "objective: CAUSAL_LM");
  }

  // Ten sentences of random words; no two begin with the same three.
  std::vector<std::string> WriteSentences() const {
    std::mt19937 random(5);
    std::vector<std::string> sentences;
    std::string lines;
    for (int i = 0; i < 10; ++i) {
      std::string& sentence = sentences.emplace_back();
      for (int j = 0; j < 20; ++j) {
        const int word = static_cast<int>(random() % 96);
        sentence += fmt::format("{}{}{}", j > 0 ? " " : "", static_cast<char>('a' + word % 26),
                                static_cast<char>('a' + word / 26));
      }
      lines += "{\"text\": \"" + sentence + "\"}\n";
    }
    ReplaceFileDurably(training_, lines);
    ReplaceFileDurably(validation_, lines);
    return sentences;
  }

  Arguments Of(const std::string& command, const std::string& run) const {
    return {command, "--checkpoint", Directory(run).string()};
  }
  // What `eval --json` prints of all validation texts for models of letters, whose rows have these
  // lengths.
  std::vector<Json> EvalWithRowsOf(const std::vector<int>& lengths) const {
    const std::string pieces = Directory("pieces.model").string();
    const Outcome made = Run(
        {"tokenizer", "train", "--config", config_.string(), "--pieces", "32", "--output", pieces});
    EXPECT_EQ(made.code, 0) << made.err;
    std::vector<Json> results;
    for (const int length : lengths) {
      const std::string run = fmt::format("run_{}", length);
      Train(run, {"train.steps=4", fmt::format("data.input_length={}", length),
                  "data.tokenizer=" + pieces, "evaluation.every=0"});
      Arguments eval = Of("eval", run);
      eval.insert(eval.end(),
                  {"--json", "--set", "evaluation.batches=0", "--set", "evaluation.batch_size=1"});
      results.push_back(ParseJson(Run(eval).out));
    }
    return results;
  }
  Outcome Convert(const std::string& input, const std::string& output,
                  const std::string& format) const {
    return Run({"convert", "--input", Directory(input).string(), "--output",
                Directory(output).string(), "--to", format});
  }
  // Expects that a run answers the line as before, once exported and read back.
  void ExpectSameBehindExport(const std::string& run, const std::string& line) const {
    const Outcome exported = Convert(run, "exported", "safetensors");
    ASSERT_EQ(exported.code, 0) << exported.err;
    const Outcome back = Convert("exported", "back", "syntra");
    ASSERT_EQ(back.code, 0) << back.err;
    const Outcome here = Run(Of("generate", run), {.input = line});
    EXPECT_EQ(here.code, 0) << here.err;
    EXPECT_EQ(Run(Of("generate", "back"), {.input = line}).out, here.out);
  }
};

const Arguments kByHeart{"data.pack=false",     "data.documents_per_group=1",
                         "train.batch_size=10", "train.steps=200",
                         "evaluation.every=0",  "evaluation.batches=1",
                         "checkpoint.every=0",  "optimizer.schedule.warmup_steps=20"};

TEST_F(DecoderRun, LearnsSentencesByHeartAndGoesOnWithThem) {
  const std::vector<std::string> sentences = WriteSentences();
  Arguments settings = kByHeart;
  settings.push_back("evaluation.samples=2");
  Train("run", settings);
  const auto metrics = Metrics("run");
  EXPECT_GT(metrics[1].at("loss").get<double>(), 4);
  // Of the 21 tokens of a sentence only the first, one of ten, cannot be known.
  const double validation = metrics.back().at("validation_log_perplexity");
  EXPECT_LT(validation, 0.2);
  EXPECT_GT(validation, 0.9 * std::log(10) / 21);
  EXPECT_THAT(Run(Of("eval", "run")).out, HasSubstr(fmt::format("{:.4f}", validation)));

  std::string beginnings, whole;
  for (size_t i = 0; i < sentences.size(); ++i) {
    // Of different lengths.
    beginnings += sentences[i].substr(0, 3 * (3 + i % 4) - 1) + "\n";
    whole += sentences[i] + "\n";
  }
  EXPECT_EQ(Run(Of("generate", "run"), {.input = beginnings}).out, whole);
  Arguments beam = Of("generate", "run");
  beam.insert(beam.end(), {"--strategy", "beam"});
  EXPECT_EQ(Run(beam, {.input = beginnings}).out, whole);
  // From nothing, one of the sentences.
  std::string first = Run(Of("generate", "run"), {.input = "\n"}).out;
  ASSERT_TRUE(first.ends_with("\n"));
  first.pop_back();
  EXPECT_THAT(sentences, testing::Contains(first));

  const std::string begun = sentences[0].substr(0, 8), rest = sentences[0].substr(9);
  const std::string other = sentences[1].substr(9);
  const Outcome scores =
      Run(Of("score", "run"), {.input = begun + "\t " + rest + "\t " + other + "\n"});
  const std::vector<std::string> parts = Split(StripSpace(scores.out), '\t');
  ASSERT_EQ(parts.size(), 2u) << scores.out << scores.err;
  EXPECT_GT(std::stod(parts[0]), -2);
  EXPECT_LT(std::stod(parts[1]), -20);
  EXPECT_EQ(scores.err.find("last word"), std::string::npos) << scores.err;
  // A target goes on as it is written, and may also be a part of a word.
  const Outcome joined = Run(Of("score", "run"), {.input = begun + "\t" + rest + "\n"});
  EXPECT_LT(std::stod(joined.out), std::stod(parts[0]) - 1);
  EXPECT_THAT(joined.err, HasSubstr("1 target goes on with the last word of the input"));
  // What was generated is as probable as generate says, but for the EOS.
  Arguments json = Of("generate", "run");
  json.push_back("--json");
  const Json answer = ParseJson(Run(json, {.input = begun + "\n"}).out).at("outputs").at(0);
  const std::string text = answer.at("text").get<std::string>();
  const Outcome again =
      Run(Of("score", "run"), {.input = begun + "\t" + text.substr(begun.size()) + "\n"});
  EXPECT_NEAR(std::stod(again.out), answer.at("log_probability").get<double>(), 0.1);

  // Each token of the text is read, and the 0 before it.
  Arguments read{"inspect", "attention"};
  const Arguments of_run{
      "--checkpoint", Directory("run").string(), "--json", "--weights", "--layer", "layer_00"};
  read.insert(read.end(), of_run.begin(), of_run.end());
  read.insert(read.end(), {"--input", "aa ba ca", "--target", " da"});
  const Json weights = ParseJson(Run(read).out).at("first_example").at(0).at("weights").at(0);
  EXPECT_EQ(weights.size(), 5u);
  // Where a row of 32 has room for another.
  for (int i = 0; i < 28; ++i) read.back() += " da";
  const Json full = ParseJson(Run(read).out).at("first_example").at(0).at("weights").at(0);
  EXPECT_EQ(full.size(), 32u);
  read.back() += " da";
  const Outcome too_long = Run(read);
  EXPECT_EQ(too_long.code, 2);
  EXPECT_THAT(too_long.out, HasSubstr("the text has a target of"));

  Arguments samples = Of("generate", "run");
  samples.insert(samples.end(), {"--samples", "10", "--raw"});
  const Outcome shown = Run(samples);
  std::string target;
  int count = 0;
  for (const std::string& line : Split(shown.out, '\n')) {
    if (line.starts_with("target: ")) target = line.substr(8);
    if (!line.starts_with("output: ")) continue;
    EXPECT_EQ(line.substr(8), target);
    ++count;
  }
  EXPECT_EQ(count, 10) << shown.out << shown.err;
  // Two of them while it learned: at first it knew nothing.
  const std::vector<std::string> lines =
      Split(ReadWholeFile(Directory("run") / "samples.jsonl"), '\n');
  ASSERT_EQ(lines.size(), 5u);
  for (size_t i = 0; i < 4; ++i) {
    const Json sample = ParseJson(lines[i]);
    EXPECT_EQ(sample.at("output") == sample.at("target"), i >= 2) << sample;
  }
}

// A word is counted once, and each space between words, wherever rows begin.
TEST_F(DecoderRun, EvalCountsTheWordsAndBytesOfTheTexts) {
  WriteSentences();
  for (const Json& result : EvalWithRowsOf({8, 13, 64})) {
    // Ten sentences of twenty words of two letters, and their ends.
    EXPECT_EQ(result.at("words"), 10 * (20 + 1)) << result;
    EXPECT_EQ(result.at("bytes"), 10 * (20 * 3 - 1)) << result;
  }
}

// What has no piece is decoded with spaces around it, which are not those of the text.
TEST_F(DecoderRun, EvalCountsTheWordsOfTextsWithUnknownCharacters) {
  std::string lines;
  for (const std::string& sentence : WriteSentences()) {
    lines += "{\"text\": \"a\u4e2d\u6587b \u00fc " + sentence + " \u00df\"}\n";
  }
  ReplaceFileDurably(validation_, lines);
  for (const Json& result : EvalWithRowsOf({8, 9, 64})) {
    EXPECT_EQ(result.at("words"), 10 * (2 + 20 + 1 + 1)) << result;
    EXPECT_EQ(result.at("bytes"), 10 * (5 + 1 + 3 + 1 + (20 * 3 - 1) + 1 + 3)) << result;
  }
}

// One text of words that are a token each. The first ones of a row are inputs, so no target is the
// first of the text, which alone has no space before it.
TEST_F(DecoderRun, EvalCountsTheSpaceBetweenInputsAndTargets) {
  WriteConfig(kModel, "objective: PREFIX_LM");
  std::string text;
  for (const std::string& sentence : WriteSentences()) text += sentence + " ";
  ReplaceFileDurably(validation_, "{\"text\": \"" + text + "\"}\n");
  Train("run", {"train.steps=4", "data.input_length=16", "evaluation.every=0"});
  Arguments eval = Of("eval", "run");
  eval.insert(eval.end(),
              {"--json", "--set", "evaluation.batches=0", "--set", "evaluation.batch_size=1"});
  const Json result = ParseJson(Run(eval).out);
  const int64_t tokens = result.at("tokens");
  EXPECT_GT(tokens, 13) << "more than a target in each row";
  EXPECT_EQ(result.at("words"), tokens);
  EXPECT_EQ(result.at("bytes"), 3 * (tokens - 1)) << "all but the end of the text";
}

TEST_F(DecoderRun, InputsThatReadEachOtherAreFollowedByWhatWasLearned) {
  const std::vector<std::string> sentences = WriteSentences();
  Arguments settings = kByHeart;
  settings.insert(settings.end(), {"data.objective=PREFIX_LM", "model.bidirectional_prefix=true"});
  Train("run", settings);
  std::string beginnings, whole;
  for (size_t i = 0; i < sentences.size(); ++i) {
    beginnings += sentences[i].substr(0, 3 * (3 + i % 4) - 1) + "\n";
    whole += sentences[i] + "\n";
  }
  EXPECT_EQ(Run(Of("generate", "run"), {.input = beginnings}).out, whole);
}

TEST_F(DecoderRun, EveryCausalMixerLearns) {
  WriteSentences();
  int runs = 0;
  for (const char* mixer : {"attention { heads: 2 head_size: 16 term { random { max_length: 32 } } "
                            "term { dot_product {} "
                            "} }",
                            "light_conv { kernel_size: 7 heads: 4 }",
                            "gated_mlp { width: 64 max_length: 32 attention_size: 8 }"}) {
    Arguments settings = kByHeart;
    settings.insert(settings.end(), {"train.steps=100", "data.objective=PREFIX_LM",
                                     std::string("model.mixer={ ") + mixer + " }"});
    const std::string name = "mixer-" + std::to_string(runs++);
    Train(name, settings);
    EXPECT_LT(Metrics(name).back().at("validation_log_perplexity").get<double>(), 1) << mixer;
  }
}

// Inputs that read each other in both directions.
const Arguments kPrefix{"data.objective=PREFIX_LM", "model.bidirectional_prefix=true",
                        "checkpoint.every=10", "model.dropout=0.1"};

TEST_F(DecoderRun, ContinuesToTheSameBits) {
  Train("straight", kPrefix);
  Arguments slow = Pretrain("broken", kPrefix);
  {
    Program first(scratch_, slow, {.environment = {"SYNTRA_FAILPOINT=slow_rank@12-20"}});
    ASSERT_TRUE(WaitUntil([&] { return HasCheckpoint("broken", 10) || !first.running(); }));
    first.Kill();
  }
  ASSERT_EQ(NewestStep("broken"), 10);
  Train("broken", kPrefix);
  EXPECT_EQ(Trace(Directory("broken"), 20), Trace(Directory("straight"), 20));
}

TEST_F(DecoderRun, TwoRanksAreOne) {
  if (MpirunPath().empty()) GTEST_SKIP() << "no mpirun";
  Arguments exact = kPrefix;
  exact.insert(exact.end(), {"train.reduction=EXACT", "train.micro_batch_size=2"});
  Train("one", exact);
  Train("two", exact, {.ranks = 2});
  EXPECT_EQ(Trace(Directory("one"), 20), Trace(Directory("two"), 20));
  std::string lines;
  for (int i = 0; i < 20; ++i)
    lines += std::string("aa ba ca da ea").substr(0, 2 + 3 * (i % 5)) + "\n";
  EXPECT_EQ(Run(Of("generate", "one"), {.ranks = 2, .input = lines}).out,
            Run(Of("generate", "one"), {.input = lines}).out);
}

TEST_F(DecoderRun, HasNoEncoder) {
  Train("run", {"train.steps=4"});
  std::set<std::string> parameters;
  const Checkpoint checkpoint(CheckpointPath("run", 4));
  for (const auto& [name, entry] : checkpoint.tensors()) {
    if (name.starts_with("parameters/")) parameters.insert(name.substr(11));
  }
  std::set<std::string> expected{"embedding", "decoder/norm", "decoder/relative_bias"};
  for (const char* layer : {"decoder/layer_00/", "decoder/layer_01/"}) {
    for (const char* name :
         {"mixer/norm", "mixer/query", "mixer/key", "mixer/value", "mixer/output",
          "feed_forward/norm", "feed_forward/input", "feed_forward/output"}) {
      expected.insert(std::string(layer) + name);
    }
  }
  EXPECT_EQ(parameters, expected);
  const Outcome plan = Run({"plan", config_.string()});
  EXPECT_THAT(plan.out, HasSubstr("8 x 32\n"));
  const Outcome data = Run({"inspect", "data", config_.string(), "--json", "--set",
                            "train.directory=" + Directory("run").string()});
  const Json row = ParseJson(data.out).at("examples")[0];
  EXPECT_FALSE(row.contains("encoder_ids"));
  EXPECT_EQ(row.at("decoder_ids").size(), 32u);
  // What a run keeps of its configuration can be given again.
  const Outcome again = Run({"check", (Directory("run") / "config.textproto").string(), "--set",
                             "train.directory=" + Directory("other").string()});
  EXPECT_EQ(again.code, 0) << again.out << again.err;
}

TEST_F(DecoderRun, IsExportedAsSafetensorsButNotAsT5) {
  Train("run", {"train.steps=4"});
  const Outcome refused = Convert("run", "exported", "huggingface");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("transformers' T5 is an encoder-decoder, and this model is "
                                     "DECODER_ONLY; use --to safetensors"));
  ExpectSameBehindExport("run", "aa ba ca\n");
}

TEST_F(DecoderRun, IsFinetunedOnTasks) {
  Train("base", {"train.steps=4", "evaluation.every=0"});
  std::string rows = "text\tlabel\n";
  for (int i = 0; i < 60; ++i) {
    const bool second = i % 3 == 0;
    rows += fmt::format("{} {}\t{}\n", second ? "ea" : "fa", i % 2 == 0 ? "ga" : "ha",
                        second ? "da" : "ca");
  }
  ReplaceFileDurably(scratch_ / "rows.tsv", rows);
  ReplaceFileDurably(scratch_ / "toy.textproto", R"(
data {
  task {
    classification {
      name: "toy" train: "rows.tsv" validation: "rows.tsv" input: "{text}" label: "ca" label: "da"
    }
  }
  input_length: 24
  target_length: 8
}
optimizer { kind: ADAMW schedule { kind: CONSTANT rate: 0.01 warmup_steps: 0 } }
train { steps: 40 batch_size: 8 threads: 1 }
evaluation { every: 0 }
checkpoint { every: 0 }
)");
  for (const char* ranked : {"false", "true"}) {
    const std::string name = std::string("ranked-") + ranked;
    const Outcome outcome =
        Run({"finetune", (scratch_ / "toy.textproto").string(), "--init-from",
             Directory("base").string(), "--set", "data.directory=" + scratch_.string(), "--set",
             "train.directory=" + Directory(name).string(), "--set",
             std::string("evaluation.rank_classification=") + ranked});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const Json results = ParseJson(ReadWholeFile(Directory(name) / "results.json"));
    EXPECT_EQ(results.at("tasks").at("toy").at("accuracy"), 100) << JsonText(results);
  }
  // Beside a short input a target may fill the row.
  std::string long_target = "da";
  for (int i = 1; i < 20; ++i) long_target += " da";
  const Outcome scored = Run(Of("score", "ranked-true"), {.input = "ea ga\t" + long_target + "\n"});
  EXPECT_EQ(scored.code, 0) << scored.err;
  EXPECT_LT(std::stod(scored.out), 0);
  const Outcome longer = Run(Of("score", "ranked-true"),
                             {.input = "ea ga\t" + long_target + " " + long_target + "\n"});
  EXPECT_EQ(longer.code, 3);
  EXPECT_THAT(longer.err, HasSubstr("data.input_length and data.target_length together"));
  // An exported model remembers its tasks, so that it still answers lines instead of going on.
  ExpectSameBehindExport("ranked-true", "ea ga\n");
}

TEST_F(DecoderRun, LongLinesAreNamed) {
  Train("run", {"train.steps=4"});
  std::string longest = "aa";
  for (int i = 1; i < 31; ++i) longest += " aa";
  Arguments generate = Of("generate", "run");
  const Outcome outcome = Run(generate, {.input = longest + "\n" + longest + " aa\n"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("line 2 of the input has 32 tokens, but the model reads 31 "
                                     "(its data.input_length, with room for a token of output)"));
  const Outcome scores = Run(Of("score", "run"), {.input = longest + "\t aa\t aa aa\naa\t\n"});
  EXPECT_EQ(scores.code, 3);
  EXPECT_THAT(scores.err, HasSubstr("line 1 of the input has a target of 2 tokens, but the model "
                                    "has room for 1"));
  EXPECT_THAT(scores.err, HasSubstr("line 2 of the input has an empty target"));
}

TEST_F(DecoderRun, MistakesAreExplained) {
  const auto error = [&](const Arguments& settings) {
    const Outcome outcome = Run(Pretrain("run", settings));
    EXPECT_EQ(outcome.code, 2);
    return outcome.err;
  };
  EXPECT_THAT(error({"model.encoder_layers=2"}),
              HasSubstr("model.encoder_layers means nothing with model.architecture DECODER_ONLY; "
                        "leave it out"));
  EXPECT_THAT(
      error({"model.bidirectional_prefix=true", "model.mixer={ retention {} }", "data.pack=false"}),
      HasSubstr("model.mixer cannot let inputs read what comes after them; use attention"));
  EXPECT_THAT(error({"data.objective=SPAN_CORRUPTION"}),
              HasSubstr("set data.objective: CAUSAL_LM or PREFIX_LM"));
  EXPECT_THAT(error({"model.mixer={ mlp {} }", "data.pack=false"}),
              HasSubstr("is not causal, so the decoder cannot use it"));
}

}  // namespace
}  // namespace syntra
