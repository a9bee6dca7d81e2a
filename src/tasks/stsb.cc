// SPDX-License-Identifier: Apache-2.0
// STS-B: how similar are two sentences, from 0 to 5? The model answers with a number, of which T5
// trains the multiples of 0.2.
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "metrics/score_text.h"
#include "tasks/label_task.h"

namespace syntra {
namespace {

constexpr double kHighest = 5;

// In float and half to even, as TensorFlow rounds.
std::string RoundedScore(double score) {
  return fmt::format("{:.1f}", std::nearbyint(static_cast<float>(score) * 5.0f) / 5.0f);
}

class Stsb : public Task {
 public:
  Stsb()
      : Task({.name = "stsb",
              .benchmark = "glue",
              .splits = GlueSplits("STS-B"),
              .labels = {},
              .metrics = {"pearson", "spearman"}}) {}

  int64_t Read(const TaskSplit& split, std::span<const Path> files, const BadRecordPolicy& policy,
               const Sink& sink) const override {
    const bool is_test = split.use == TaskSplit::Use::kTest;
    return ReadRows(
        {files[0], kTsv, {{"sentence1"}, {"sentence2"}, {"score", is_test}, {"index", true}}},
        policy, [&](const Row& row) { return Parse(row, split.use); }, sink);
  }

  Judgement Judge(const TaskExample& example, std::string_view text) const override {
    Judgement judgement = Task::Judge(example, text);
    judgement.predicted = ScoreOfText(text);
    return judgement;
  }

  bool IsSettled(std::string_view begun) const override { return BeginsNoScore(begun); }
  bool CanSettle() const override { return true; }

 protected:
  // The server takes nothing outside the scale.
  Json Submitted(const Prediction& prediction) const override {
    return std::clamp(ScoreOfText(prediction.text), 0.0, kHighest);
  }

 private:
  static std::vector<TaskExample> Parse(const Row& row, TaskSplit::Use use) {
    TaskExample example;
    example.inputs =
        fmt::format("stsb sentence1: {} sentence2: {}", *row.fields[0], *row.fields[1]);
    example.targets = kNoTarget;
    if (const auto text = LabelOf(row.fields[2], use)) {
      double score = 0;
      if (!ParseDouble(*text, &score) || !(score >= 0 && score <= kHighest)) {
        throw BadRow{fmt::format("score is \"{}\"; must be from 0 to 5", Printable(*text, 40))};
      }
      example.targets = RoundedScore(score);
      // T5 compares with the rounded score.
      example.expected = ScoreOfText(example.targets);
    }
    example.id = IdOf(row.fields[3], row);
    return {std::move(example)};
  }
};

}  // namespace

std::unique_ptr<Task> task_stsb(const TaskConfig& /*config*/) { return std::make_unique<Stsb>(); }

}  // namespace syntra
