// SPDX-License-Identifier: Apache-2.0
// Every metric gives what T5's own functions gave: on the cases of make_metrics.py and on those
// of T5's tests.
#include <gtest/gtest.h>

#include <set>

#include "tests/metrics/golden_json.h"

namespace syntra {
namespace {

std::vector<Judgement> ExamplesOf(const Json& golden) {
  std::vector<Judgement> examples(golden.value("expected", golden.value("texts", Json())).size());
  for (size_t i = 0; i < examples.size(); ++i) {
    Judgement& one = examples[i];
    if (golden.contains("expected")) {
      one.expected = golden["expected"][i];
      one.predicted = golden["predicted"][i];
    } else {
      one.predicted_text = golden["texts"][i];
      one.accepted_texts = golden["accepted"][i];
    }
    if (golden.contains("groups")) one.group = golden["groups"][i];
  }
  return examples;
}

TEST(GoldenMetrics, AreAsT5ComputesThem) {
  const Json file = GoldenJson("metrics.json");
  std::set<std::string> seen;
  for (const Json& golden : file["cases"]) {
    const std::vector<Judgement> examples = ExamplesOf(golden);
    for (const auto& [name, values] : golden["metrics"].items()) {
      seen.insert(name);
      const NamedValues found = FindMetric(name).Compute(examples, golden.value("classes", 0));
      ASSERT_EQ(found.size(), values.size()) << name;
      for (const NamedValue& one : found) {
        EXPECT_NEAR(one.value, values.at(one.name).get<double>(), 1e-9)
            << name << " of " << golden["what"];
      }
    }
  }
  const std::vector<std::string> all = MetricNames();
  EXPECT_EQ(seen, std::set<std::string>(all.begin(), all.end()))
      << "a metric without cases: give it some in tests/golden/make_metrics.py";
}

// T5's names of our metrics and of their values; those of its cases that are not here are named.
struct Ours {
  std::string metric, value;
};
Ours OursOf(const std::string& metric, const std::string& value) {
  if (metric == "mean_multiclass_f1") return {"macro_f1", "macro_f1"};
  if (metric == "pearson_corrcoef") return {"pearson", "pearson"};
  if (metric == "spearman_corrcoef") return {"spearman", "spearman"};
  if (metric == "f1_score_with_invalid") return {"f1", "f1"};
  if (metric == "matthews_corrcoef") return {"matthews", "matthews"};
  if (metric == "multirc_f1_over_all_answers") return {"multirc", "f1a"};
  for (const char* same : {"accuracy", "sequence_accuracy", "squad", "bleu", "rouge"}) {
    if (metric == same) return {metric, value};
  }
  return {};
}

Judgement ExampleOf(const Json& target, const Json& prediction, bool is_binary) {
  Judgement example;
  if (target.is_object()) {
    example = ExampleOf(target["value"], prediction["value"], true);
    example.group = target["group"];
  } else if (target.is_number()) {
    example.expected = target;
    // T5's test lets any number but 0 and 1 stand for a text that is no label.
    example.predicted = is_binary && prediction > 1 ? -1 : prediction.get<double>();
  } else {
    example.predicted_text = prediction;
    example.accepted_texts = target.is_array() ? target.get<std::vector<std::string>>()
                                               : std::vector<std::string>{target};
  }
  return example;
}

TEST(GoldenMetrics, PassT5sOwnTests) {
  int compared = 0;
  const Json file = GoldenJson("t5_metrics.json");
  for (const Json& golden : file["cases"]) {
    for (const auto& [value_name, expected] : golden["expect"].items()) {
      const Ours ours = OursOf(golden["metric"], value_name);
      if (ours.metric.empty()) continue;
      const Metric& metric = FindMetric(ours.metric);
      std::vector<Judgement> examples;
      for (size_t i = 0; i < golden["targets"].size(); ++i) {
        examples.push_back(
            ExampleOf(golden["targets"][i], golden["predictions"][i], metric.classes == 2));
      }
      for (const NamedValue& one : metric.Compute(examples, golden.value("num_classes", 0))) {
        if (one.name != ours.value) continue;
        EXPECT_NEAR(one.value, expected.get<double>(), golden.contains("places") ? 5e-3 : 1e-9)
            << golden["metric"];
        ++compared;
      }
    }
  }
  EXPECT_EQ(compared, 18);
}

TEST(GoldenMetrics, PassSacrebleusOwnTests) {
  const Json file = GoldenJson("sacrebleu.json");
  int compared = 0;
  for (const Json& golden : file["corpus_bleu"]) {
    const std::string tokenizer = golden["tokenize"];
    if (tokenizer == "none") continue;
    std::vector<Judgement> examples;
    for (size_t i = 0; i < golden["hypotheses"].size(); ++i) {
      Judgement& one = examples.emplace_back();
      one.predicted_text = golden["hypotheses"][i];
      for (const Json& stream : golden["reference_streams"]) {
        if (!stream[i].is_null()) one.accepted_texts.push_back(stream[i]);
      }
    }
    const Metric& metric = FindMetric(tokenizer == "intl" ? "bleu" : "bleu_13a");
    EXPECT_NEAR(metric.Compute(examples)[0].value, golden["bleu"].get<double>(), 1e-6);
    ++compared;
  }
  EXPECT_EQ(compared, 3);
}

}  // namespace
}  // namespace syntra
