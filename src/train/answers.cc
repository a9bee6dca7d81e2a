// SPDX-License-Identifier: Apache-2.0
#include "train/answers.h"

#include <algorithm>
#include <numeric>

#include "base/clock.h"
#include "data/with_eos.h"
#include "plan/label_ranking.h"

namespace syntra {
namespace {

// Examples between two looks at whether the run shall stop.
constexpr size_t kChunk = 288;

}  // namespace

Answerer::Answerer(const TrainedModel& model, const Tokenizer& tokenizer, const Config& config,
                   std::span<const TaskData> tasks, Communicator& ranks, OnProgress on_progress)
    : tokenizer_(tokenizer),
      ranks_(ranks),
      config_(config),
      lengths_(RowLengths(config.data())),
      on_progress_(std::move(on_progress)),
      scorer_(model, DecodeSettingsOf(config)) {
  for (const TaskData& data : tasks) {
    if (data.first_class > 0) first_class_.emplace(data.task.get(), data.first_class);
  }
  const auto is_ranked = [&](const TaskData& data) { return RanksLabels(config, *data.task); };
  if (std::ranges::all_of(tasks, is_ranked)) return;
  decoder_.emplace(model, tokenizer, DecodeSettingsOf(config));
}

std::vector<std::string> Answerer::Decoded(const Task& task, std::vector<Ids> inputs,
                                           const OnBatch& on_batch) {
  // Beam search would rank an output that ends early higher than the whole one.
  const bool settles = task.CanSettle() && StrategyName(config_.decoding()) == "greedy";
  std::vector<DecodeRequest> requests;
  requests.reserve(inputs.size());
  for (Ids& ids : inputs) {
    requests.push_back({std::move(ids), {}});
    if (!settles) continue;
    requests.back().is_settled = [&](std::span<const int32_t> begun) {
      return task.IsSettled(tokenizer_.DecodeBeginning(begun));
    };
  }
  std::vector<std::string> texts;
  for (const Hypotheses& outputs : decoder_->Decode(requests, ranks_, on_batch)) {
    texts.push_back(tokenizer_.Decode(outputs.front().ids));
  }
  return texts;
}

std::vector<Answerer::Ids> Answerer::TargetsOf(const Task& task) const {
  std::vector<Ids> targets;
  const auto first = first_class_.find(&task);
  for (const std::string& label : task.traits().labels) {
    const auto index = static_cast<int32_t>(targets.size());
    targets.push_back(first == first_class_.end() ? IdsWithEos(tokenizer_, label, lengths_.targets)
                                                  : Ids{first->second + index});
  }
  return targets;
}

std::vector<std::vector<double>> Answerer::LabelScores(const Task& task, std::vector<Ids> inputs,
                                                       const OnBatch& on_batch) {
  const std::vector<Ids> targets = TargetsOf(task);
  std::vector<ScoreRequest> requests;
  requests.reserve(inputs.size());
  for (Ids& ids : inputs) requests.push_back({std::move(ids), targets});
  return scorer_.Score(requests, ranks_, on_batch);
}

std::vector<std::string> Answerer::MostProbableLabels(const Task& task, std::vector<Ids> inputs,
                                                      const OnBatch& on_batch) {
  std::vector<std::string> texts;
  for (const std::vector<double>& scores : LabelScores(task, std::move(inputs), on_batch)) {
    texts.push_back(task.traits().labels[MostProbable(scores)]);
  }
  return texts;
}

std::vector<std::string> Answerer::Texts(const Task& task, std::vector<Ids> inputs,
                                         const OnBatch& on_batch) {
  return RanksLabels(config_, task) ? MostProbableLabels(task, std::move(inputs), on_batch)
                                    : Decoded(task, std::move(inputs), on_batch);
}

std::optional<Answers> Answerer::Answer(const Task& task, std::span<const TaskExample> examples,
                                        const std::function<bool()>& stop) {
  std::vector<Ids> inputs;
  for (const TaskExample& example : examples) {
    inputs.push_back(IdsWithEos(tokenizer_, example.inputs, lengths_.inputs));
  }
  // By length, so that the examples of a chunk need little padding; the longest first, which take
  // the most memory.
  std::vector<size_t> order(inputs.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t i) { return inputs[i].size(); });
  AnswerProgress progress{.task = task, .total = std::ssize(examples)};
  const auto on_batch = [&, start = Clock::now()](size_t count) {
    const int64_t done = progress.done + static_cast<int64_t>(count) * ranks_.size();
    progress.done = std::min(done, progress.total);
    progress.seconds = SecondsSince(start);
    if (on_progress_) on_progress_(progress);
  };
  Answers answers(inputs.size());
  for (size_t first = 0; first < order.size(); first += kChunk) {
    if (stop()) return std::nullopt;
    const auto chunk = std::span(order).subspan(first, std::min(kChunk, order.size() - first));
    std::vector<Ids> asked;
    for (const size_t i : chunk) asked.push_back(std::move(inputs[i]));
    std::vector<std::string> texts = Texts(task, std::move(asked), on_batch);
    for (size_t k = 0; k < chunk.size(); ++k) {
      answers[chunk[k]] = {examples[chunk[k]], std::move(texts[k])};
    }
  }
  return answers;
}

}  // namespace syntra
