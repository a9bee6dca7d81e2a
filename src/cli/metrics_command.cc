// SPDX-License-Identifier: Apache-2.0
// syntra metrics: judges the answers of any program.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
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
  if (path == "-") {
    Fail(ExitCode::kConfig,
         "\"-\": standard input is not read here; write its lines to a file and name that");
  }
  RequireExists(path);
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
  if (examples.empty()) {
    Fail(ExitCode::kData, "{} is empty; each of its lines must be an answer", options.answers);
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

// Fills in what the metric reads of the examples. `labels`: in the order of their classes.
void ReadFor(const Metric& metric, std::span<const std::string> labels,
             std::vector<Judgement>* examples) {
  if (metric.reads == Metric::Reads::kTexts) return;
  if (const size_t references = examples->front().accepted_texts.size(); references > 1) {
    Fail(ExitCode::kConfig,
         "{} compares each answer with one {}, but there are {} files of references; give one",
         metric.name, metric.reads == Metric::Reads::kScores ? "number" : "label", references);
  }
  if (metric.reads == Metric::Reads::kScores) return ReadScores(examples);
  FindClasses(labels, examples);
  const auto classes = static_cast<int>(labels.size());
  if (metric.classes > 0 && metric.classes != classes) {
    Fail(ExitCode::kConfig, "{} judges {} labels, and there are {}: {}; name them with --label",
         metric.name, metric.classes, classes, Join(labels, ", "));
  }
}

// The labels given by --label; without them all references, in alphabetical order.
std::vector<std::string> LabelsOf(const MetricsOptions& options,
                                  std::span<const Judgement> examples) {
  std::set<std::string> labels;
  for (const std::string& label : options.labels) {
    if (labels.insert(label).second) continue;
    Fail(ExitCode::kConfig, "--label {} is given twice; each label is a class of its own",
         Printable(label, 40));
  }
  if (!options.labels.empty()) return options.labels;
  for (const Judgement& example : examples) labels.insert(example.accepted_texts.front());
  return {labels.begin(), labels.end()};
}

// The metrics that are asked for, each once.
std::vector<const Metric*> ChosenMetrics(const MetricsOptions& options) {
  std::vector<const Metric*> metrics;
  for (const std::string& name : options.metrics) {
    const Metric* metric = &FindMetric(name);
    if (std::ranges::find(metrics, metric) == metrics.end()) metrics.push_back(metric);
  }
  return metrics;
}

// Values whose name another of the metrics has, too, are named METRIC/VALUE.
std::string NameAmong(std::span<const Metric* const> metrics, const Metric& metric,
                      const std::string& value) {
  const bool is_shared = std::ranges::any_of(metrics, [&](const Metric* other) {
    return other != &metric && std::ranges::find(other->values, value) != other->values.end();
  });
  return is_shared ? metric.name + "/" + value : value;
}

// What a metric has made of the answers, beside its values.
struct JudgedMetric {
  const Metric* metric;
  NamedValues values;
  int64_t unread = 0;  // answers that are no label, no number or, for metrics of texts, empty
};

JudgedMetric Judged(const Metric& metric, std::span<const Metric* const> metrics,
                    std::span<const std::string> labels, std::vector<Judgement> examples) {
  ReadFor(metric, labels, &examples);
  const bool reads_labels = metric.reads == Metric::Reads::kLabels;
  JudgedMetric judged{
      .metric = &metric,
      .values = metric.Compute(examples, reads_labels ? static_cast<int>(labels.size()) : 0)};
  for (NamedValue& value : judged.values) value.name = NameAmong(metrics, metric, value.name);
  judged.unread = metric.reads == Metric::Reads::kTexts
                      ? std::ranges::count(examples, "", &Judgement::predicted_text)
                      : CountInvalid(examples);
  return judged;
}

bool HasPositiveLabel(const Metric& metric) {
  return metric.reads == Metric::Reads::kLabels && metric.classes == 2;
}

void PrintJudged(const JudgedMetric& judged, std::span<const std::string> labels, size_t examples) {
  for (const NamedValue& value : judged.values) {
    fmt::print("{:18} {:.2f}\n", value.name, value.value);
  }
  const Metric& metric = *judged.metric;
  if (HasPositiveLabel(metric)) {
    Log().info("{}: the positive label is \"{}\", the second of {}; --label sets their order",
               metric.name, labels[1], Join(labels, ", "));
  }
  if (judged.unread == 0) return;
  const std::string what = metric.reads == Metric::Reads::kTexts    ? "empty"
                           : metric.reads == Metric::Reads::kScores ? "not readable as a number"
                                                                    : "none of the labels";
  Log().warn("{}: {} of {} {} {}", metric.name, WithThousands(judged.unread),
             Counted(static_cast<int64_t>(examples), "answer"), judged.unread == 1 ? "is" : "are",
             what);
}

ExitCode PrintMetrics(const MetricsOptions& options) {
  const std::vector<const Metric*> metrics = ChosenMetrics(options);
  const std::vector<Judgement> examples = ReadExamples(options);
  const std::vector<std::string> labels = LabelsOf(options, examples);
  std::vector<JudgedMetric> all;  // before anything is printed, since one may fail
  for (const Metric* metric : metrics) all.push_back(Judged(*metric, metrics, labels, examples));
  Json values = Json::object(), unread = Json::object(), positive = Json::object();
  for (const JudgedMetric& judged : all) {
    const Metric& metric = *judged.metric;
    for (const NamedValue& value : judged.values) values[value.name] = value.value;
    unread[metric.name] = judged.unread;
    if (HasPositiveLabel(metric)) positive[metric.name] = labels[1];
    if (!options.json) PrintJudged(judged, labels, examples.size());
  }
  if (options.json) {
    fmt::print("{}\n", JsonText({{"examples", examples.size()},
                                 {"metrics", values},
                                 {"unread_answers", unread},
                                 {"positive_labels", positive}}));
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
  Repeatable(app.add_option("--references", options->references,
                            "File with the right answer to each line, or with another one that is "
                            "right"))
      ->required()
      ->type_name("FILE");
  Repeatable(app.add_option("--label", options->labels,
                            "Label of class 0, then of class 1, ..., for metrics of labels; "
                            "without it all that the references have, in alphabetical order. Of "
                            "two, f1 and multirc take the second as the positive one"))
      ->type_name("NAME");
  app.add_flag("--json", options->json, "Print JSON");
  return [options] { return PrintMetrics(*options); };
}

}  // namespace syntra
