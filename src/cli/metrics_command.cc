// SPDX-License-Identifier: Apache-2.0
// syntra metrics: judges the answers of any program.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>

#include "base/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "data/record_reader.h"
#include "metrics/metric.h"
#include "metrics/score_text.h"

namespace syntra {
namespace {

struct MetricsOptions {
  std::vector<std::string> metrics;
  std::string answers;
  std::vector<std::string> references, labels;
  bool json = false;
};

// All lines; blank ones are empty texts.
std::vector<std::string> LinesOf(const Path& path) {
  std::vector<std::string> lines;
  const std::unique_ptr<RecordReader> reader = OpenLines(path);
  for (Record record; reader->Next(&record);) {
    if (record.fault != RecordFault::kNone && record.fault != RecordFault::kEmptyLine) {
      Fail(ExitCode::kData, "{}: line {}: {}", path.string(), record.line, ReasonOf(record.fault));
    }
    lines.emplace_back(record.fault == RecordFault::kNone ? record.text : "");
  }
  return lines;
}

std::vector<Judgement> ReadExamples(const MetricsOptions& options) {
  std::vector<Judgement> examples;
  for (std::string& answer : LinesOf(options.answers)) {
    examples.emplace_back().predicted_text = std::move(answer);
  }
  for (const std::string& file : options.references) {
    const std::vector<std::string> lines = LinesOf(file);
    if (lines.size() != examples.size()) {
      Fail(ExitCode::kData, "{} has {}, but {} has {}; each line belongs to an answer", file,
           Counted(std::ssize(lines), "line"), options.answers, examples.size());
    }
    for (size_t i = 0; i < lines.size(); ++i) examples[i].accepted_texts.push_back(lines[i]);
  }
  return examples;
}

// Fills in the classes of references and answers: their places among `labels`.
void FindClasses(std::span<const std::string> labels, std::vector<Judgement>* examples) {
  const auto class_of = [&](const std::string& text) {
    const auto found = std::ranges::find(labels, text);
    return found == labels.end() ? -1.0 : static_cast<double>(found - labels.begin());
  };
  for (size_t i = 0; i < examples->size(); ++i) {
    Judgement& example = (*examples)[i];
    example.expected = class_of(example.accepted_texts.front());
    example.predicted = class_of(example.predicted_text);
    if (example.expected >= 0) continue;
    Fail(ExitCode::kData, "line {} of the references is \"{}\", which is none of the labels {}",
         i + 1, Printable(example.accepted_texts.front(), 40), Join(labels, ", "));
  }
}

void ReadScores(std::vector<Judgement>* examples) {
  for (size_t i = 0; i < examples->size(); ++i) {
    Judgement& example = (*examples)[i];
    const std::string& reference = example.accepted_texts.front();
    if (!ParseDouble(reference, &example.expected)) {
      Fail(ExitCode::kData, "line {} of the references is \"{}\", which is no number", i + 1,
           Printable(reference, 40));
    }
    example.predicted = ScoreOfText(example.predicted_text);
  }
}

// The values of a metric; `labels`: in the order of their classes.
NamedValues ValuesOf(const Metric& metric, std::span<const std::string> labels,
                     std::vector<Judgement> examples) {
  if (metric.reads == Metric::Reads::kTexts) return metric.Compute(examples);
  if (metric.reads == Metric::Reads::kScores) {
    ReadScores(&examples);
    return metric.Compute(examples);
  }
  FindClasses(labels, &examples);
  const auto classes = static_cast<int>(labels.size());
  if (metric.classes > 0 && metric.classes != classes) {
    Fail(ExitCode::kConfig, "{} judges {} labels, and there are {}: {}; name them with --label",
         metric.name, metric.classes, classes, Join(labels, ", "));
  }
  return metric.Compute(examples, classes);
}

// Those that are named or, without names, all references, in alphabetical order.
std::vector<std::string> LabelsOf(const MetricsOptions& options,
                                  std::span<const Judgement> examples) {
  if (!options.labels.empty()) return options.labels;
  std::set<std::string> labels;
  for (const Judgement& example : examples) labels.insert(example.accepted_texts.front());
  return {labels.begin(), labels.end()};
}

ExitCode PrintMetrics(const MetricsOptions& options) {
  std::vector<const Metric*> metrics;
  for (const std::string& name : options.metrics) metrics.push_back(&FindMetric(name));
  const std::vector<Judgement> examples = ReadExamples(options);
  const std::vector<std::string> labels = LabelsOf(options, examples);
  Json all = Json::object();
  for (const Metric* metric : metrics) {
    for (const NamedValue& value : ValuesOf(*metric, labels, examples)) {
      all[value.name] = value.value;
      if (!options.json) fmt::print("{:18} {:.2f}\n", value.name, value.value);
    }
  }
  if (options.json) {
    fmt::print("{}\n", JsonText({{"examples", examples.size()}, {"metrics", all}}));
  }
  return ExitCode::kDone;
}

}  // namespace

Action SetUpMetrics(CLI::App& app) {
  const auto options = std::make_shared<MetricsOptions>();
  app.add_option("metric", options->metrics, "Metrics to compute: " + Join(MetricNames(), ", "))
      ->required()
      ->type_name("NAME");
  app.add_option("--answers", options->answers, "File with an answer in each line")
      ->required()
      ->type_name("FILE");
  app.add_option("--references", options->references,
                 "File with the right answer to each line; may be repeated where several are right")
      ->required()
      ->type_name("FILE")
      ->allow_extra_args(false);
  app.add_option("--label", options->labels,
                 "Label of class 0, then of class 1, ..., for metrics of labels; without it all "
                 "that the references have, in alphabetical order")
      ->type_name("NAME")
      ->allow_extra_args(false);
  app.add_flag("--json", options->json, "Print JSON");
  return [options] { return PrintMetrics(*options); };
}

}  // namespace syntra
