// SPDX-License-Identifier: Apache-2.0
// Training learns ten sentences by heart.
#include <random>

#include "base/text.h"
#include "tests/e2e/tiny_run.h"

namespace syntra {
namespace {

class Learning : public TinyRun {
 protected:
  // Ten sentences of `words` random words, each an example of its own.
  void WriteSentences(int words) const {
    std::mt19937 random(5);
    std::string lines;
    for (int i = 0; i < 10; ++i) {
      lines += "{\"text\": \"";
      for (int j = 0; j < words; ++j) {
        const int word = static_cast<int>(random() % 96);
        lines += fmt::format("{}{}{}", j > 0 ? " " : "", static_cast<char>('a' + word % 26),
                             static_cast<char>('a' + word / 26));
      }
      lines += "\"}\n";
    }
    ReplaceFileDurably(training_, lines);
    ReplaceFileDurably(validation_, lines);
  }
};

const Arguments kSettings{"data.pack=false",     "data.documents_per_group=1",
                          "model.dropout=0",     "model.cross_attention.dropout=0",
                          "train.batch_size=10", "train.steps=300",
                          "evaluation.every=0",  "evaluation.batches=1",
                          "checkpoint.every=0",  "optimizer.schedule.warmup_steps=30"};

TEST_F(Learning, TenSentencesByHeart) {
  WriteSentences(24);
  Arguments settings = kSettings;
  settings.push_back("model.mixer={ attention { heads: 2 head_size: 16 } }");
  Train("run", settings);
  const auto metrics = Metrics("run");
  EXPECT_GT(metrics[1].at("loss").get<double>(), 4);
  EXPECT_LT(metrics[metrics.size() - 2].at("loss").get<double>(), 0.1);
  EXPECT_LT(metrics.back().at("validation_log_perplexity").get<double>(), 0.1);

  const Arguments generate{"generate", "--checkpoint", Directory("run").string()};
  Arguments show = generate;
  show.insert(show.end(), {"--samples", "10", "--raw"});
  const Outcome outcome = Run(show);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  int samples = 0;
  std::string target, inputs, sentences;
  for (const std::string& line : Split(outcome.out, '\n')) {
    if (line.starts_with("input:  ")) inputs += line.substr(8) + "\n";
    if (line.starts_with("target: ")) target = line.substr(8);
    if (line.starts_with("output: ")) {
      EXPECT_EQ(line.substr(8), target);
      ++samples;
    }
  }
  EXPECT_EQ(samples, 10) << outcome.out;

  // Filled, the inputs are the sentences.
  for (const std::string& line : Split(ReadWholeFile(validation_), '\n')) {
    if (!line.empty()) sentences += ParseJson(line).at("text").get<std::string>() + "\n";
  }
  EXPECT_EQ(Run(generate, {.input = inputs}).out, sentences);
  // For people: each gap with what was there and what the model puts.
  show.pop_back();
  const Outcome table = Run(show);
  int gaps = 0;
  for (const std::string& line : Split(table.out, '\n')) {
    if (!line.starts_with("  [")) continue;
    const size_t bar = line.find(" | ");
    ASSERT_NE(bar, std::string::npos) << line;
    EXPECT_EQ(StripSpace(line.substr(7, bar - 7)), line.substr(bar + 3)) << line;
    ++gaps;
  }
  EXPECT_EQ(gaps, 10) << table.out;
}

// Every way of mixing learns something in as many steps.
TEST_F(Learning, EveryMixerLearns) {
  WriteSentences(24);
  const auto attention = [](const std::string& terms) {
    return "attention { heads: 2 head_size: 16 " + terms + " }";
  };
  const Arguments mixers{
      attention("term { random { max_length: 32 } }"),
      attention("term { factorized_random { max_length: 32 rank: 4 } }"),
      attention("term { dense { max_length: 32 } }"),
      attention("term { factorized_dense { a: 8 b: 4 } }"),
      attention("term { random { max_length: 32 } } term { dot_product {} } gate: SIGMOID"),
      attention("term { random { max_length: 32 } } term { dense { max_length: 32 } } "
                "term { dot_product {} } gate: SOFTMAX"),
      "light_conv { kernel_size: 7 heads: 4 }",
      "dynamic_conv { kernel_size: 7 heads: 4 }",
      "light_conv { kernel_size: 7 form: MESH }",
      "gated_mlp { width: 64 max_length: 32 attention_size: 8 }",
      "local_attention { heads: 2 head_size: 16 radius: 4 dilation: 2 global_tokens: 1 }",
      "sinkhorn { heads: 2 head_size: 16 block_size: 8 max_length: 32 }",
      "linear_attention { heads: 2 head_size: 16 }",
      "performer { heads: 2 head_size: 16 features: 32 }",
      "retention { heads: 2 head_size: 16 value_size: 32 }",
      "attention_free { width: 32 max_length: 32 }",
      "hyena { max_length: 32 filter_width: 16 }",
  };
  // Those that cannot hide later positions are in encoders.
  const Arguments encoders{
      "fourier { max_length: 32 orthonormal: true }",
      "linformer { heads: 2 head_size: 16 projected_length: 16 max_length: 32 }",
      "mlp { width: 64 max_length: 32 }",
      "big_bird { heads: 2 head_size: 16 block_size: 4 random_blocks: 1 max_length: 32 }",
      "reformer { heads: 2 head_size: 16 chunk_length: 8 buckets: 4 }",
  };
  int runs = 0;
  const auto expect_learns = [&](const std::string& mixer, const Arguments& more) {
    const std::string name = "mixer-" + std::to_string(runs++);
    Arguments settings = kSettings;
    settings.insert(settings.end(),
                    {"train.steps=150", "data.pack=false", "model.positions={ sinusoidal {} }",
                     "model.mixer={ " + mixer + " }"});
    settings.insert(settings.end(), more.begin(), more.end());
    Train(name, settings);
    EXPECT_LT(Metrics(name).back().at("validation_log_perplexity").get<double>(), 1) << mixer;
  };
  for (const std::string& mixer : mixers) expect_learns(mixer, {});
  const Arguments decoder{"model.decoder_mixer={ " + attention("term { dot_product {} }") + " }"};
  for (const std::string& mixer : encoders) expect_learns(mixer, decoder);
}

}  // namespace
}  // namespace syntra
