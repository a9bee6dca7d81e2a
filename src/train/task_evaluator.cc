// SPDX-License-Identifier: Apache-2.0
#include "train/task_evaluator.h"

#include <algorithm>
#include <numeric>

#include "base/text.h"

namespace syntra {
namespace {

// Examples between two looks at whether the run shall stop.
constexpr size_t kChunk = 256;

std::string Summary(const TaskResult& result, size_t examples) {
  std::vector<std::string> values;
  for (const NamedValue& value : result.values) {
    values.push_back(fmt::format("{} {:.2f}", value.name, value.value));
  }
  return fmt::format("{}: {} over {} examples", result.task, Join(values, ", "),
                     WithThousands(static_cast<int64_t>(examples)));
}

}  // namespace

DecodeRequest RequestOf(const TaskExample& example, const Tokenizer& tokenizer,
                        int64_t input_length) {
  DecodeRequest request{tokenizer.Encode(example.inputs), {}};
  if (std::ssize(request.ids) >= input_length) request.ids.resize(input_length - 1);
  request.ids.push_back(tokenizer.eos_id());
  return request;
}

std::string SuffixOf(const TaskSplit& split) {
  const size_t end = split.name.find('_');
  return end == std::string::npos ? "" : split.name.substr(end + 1);
}

std::vector<Judgement> JudgementsOf(const Task& task, const Answers& answers) {
  std::vector<Judgement> judgements;
  for (const Prediction& answer : answers) {
    judgements.push_back(task.Judge(answer.example, answer.text));
  }
  return judgements;
}

NamedValues MetricsOf(const Task& task, std::span<const Judgement> judgements,
                      const std::string& suffix) {
  const auto classes = static_cast<int>(task.traits().labels.size());
  NamedValues values;
  for (const std::string& name : task.traits().metrics) {
    for (NamedValue& value : FindMetric(name).Compute(judgements, classes)) {
      if (!suffix.empty()) value.name += "_" + suffix;
      values.push_back(std::move(value));
    }
  }
  return values;
}

std::string PredictionLines(const Task& task, const Answers& answers) {
  std::string lines;
  for (const Prediction& answer : answers) {
    lines += PredictionLine(task, answer);
    lines += '\n';
  }
  return lines;
}

std::optional<Answers> AnswerAll(std::span<const TaskExample> examples, const Tokenizer& tokenizer,
                                 BatchDecoder& decoder, Communicator& ranks,
                                 const std::function<bool()>& stop) {
  std::vector<DecodeRequest> requests;
  for (const TaskExample& example : examples) {
    requests.push_back(RequestOf(example, tokenizer, decoder.input_length()));
  }
  // By length, so that the examples of a chunk need little padding.
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](size_t i) { return requests[i].ids.size(); });
  Answers answers(requests.size());
  for (size_t first = 0; first < order.size(); first += kChunk) {
    if (stop()) return std::nullopt;
    const auto chunk = std::span(order).subspan(first, std::min(kChunk, order.size() - first));
    std::vector<DecodeRequest> asked;
    for (const size_t i : chunk) asked.push_back(std::move(requests[i]));
    const std::vector<Hypotheses> outputs = decoder.Decode(asked, ranks);
    for (size_t k = 0; k < chunk.size(); ++k) {
      answers[chunk[k]] = {examples[chunk[k]], tokenizer.Decode(outputs[k].front().ids)};
    }
  }
  return answers;
}

std::optional<EvaluationResult> TaskEvaluator::Evaluate(int64_t,
                                                        const std::function<bool()>& stop) {
  result_ = {data_.name(), {}};
  answers_.clear();
  std::vector<Judgement> judgements;
  for (const TaskSplitData& split : data_.validation) {
    std::optional<Answers> answers =
        AnswerAll(split.examples, tokenizer_, decoder_, run_.ranks, stop);
    if (!answers) return std::nullopt;
    const std::string suffix = SuffixOf(*split.split);
    const std::vector<Judgement> judged = JudgementsOf(*data_.task, *answers);
    const NamedValues values = MetricsOf(*data_.task, judged, suffix);
    result_.values.insert(result_.values.end(), values.begin(), values.end());
    judgements.insert(judgements.end(), judged.begin(), judged.end());
    answers_[data_.name() + (suffix.empty() ? "" : "_" + suffix)] = std::move(*answers);
  }
  EvaluationResult result{{}, Summary(result_, judgements.size())};
  for (const NamedValue& value : result_.values) {
    result.values.push_back({MetricKey(data_.name(), value.name), value.value});
  }
  result.values.push_back({data_.name() + "_invalid", InvalidPercent(judgements)});
  return result;
}

}  // namespace syntra
