// SPDX-License-Identifier: Apache-2.0
#include "run/prometheus_file.h"

#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <map>

#include "base/clock.h"
#include "base/log.h"
#include "base/staged_file.h"
#include "base/text.h"
#include "run/metrics_log.h"

namespace syntra {
namespace {

constexpr std::string_view kPrefix = "syntra_";

// Names are made of letters, digits and underscores.
std::string MetricName(std::string_view name) {
  std::string metric(kPrefix);
  for (const char c : name) metric += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return metric;
}

std::string LabelValue(std::string_view text) {
  std::string value;
  for (const char c : text) {
    if (c == '\\' || c == '"') value += '\\';
    c == '\n' ? value += "\\n" : value += c;
  }
  return value;
}

std::string NumberText(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

}  // namespace

PrometheusFile::PrometheusFile(const Path& path, const Labels& labels,
                               std::function<double()> seconds)
    : path_(path), seconds_(seconds ? std::move(seconds) : MonotonicSeconds), due_(seconds_()) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : labels) {
    parts.push_back(fmt::format("{}=\"{}\"", name, LabelValue(value)));
  }
  labels_ = Join(parts, ",");
}

void PrometheusFile::Set(const NamedValues& values) {
  for (const auto& [name, value] : values) Set(name, value);
}

std::string PrometheusFile::Text() const {
  // The lines of each metric. A task may have any name, so that is a label.
  std::map<std::string, std::string> lines;
  for (const auto& [name, value] : values_) {
    const std::optional<TaskMetric> of_task = TaskMetricOf(name);
    const std::string metric = MetricName(of_task ? of_task->value : name);
    const std::string labels =
        of_task ? fmt::format("{},task=\"{}\"", labels_, LabelValue(of_task->task)) : labels_;
    lines[metric] += fmt::format("{}{{{}}} {}\n", metric, labels, NumberText(value));
  }
  std::string text;
  for (const auto& [metric, its_lines] : lines) {
    text += fmt::format("# HELP {0} The latest {1} of the run.\n# TYPE {0} gauge\n{2}", metric,
                        metric.substr(kPrefix.size()), its_lines);
  }
  if (events_.empty()) return text;
  text +=
      "# HELP syntra_events_total What happened to the run so far.\n"
      "# TYPE syntra_events_total counter\n";
  for (const auto& [event, count] : events_) {
    text += fmt::format("syntra_events_total{{{},event=\"{}\"}} {}\n", labels_, LabelValue(event),
                        count);
  }
  return text;
}

void PrometheusFile::Write() {
  due_ = seconds_() + kSeconds;
  try {
    const std::string text = Text();
    StagedFile file(path_);
    file.Write(std::as_bytes(std::span(text)));
    file.PutInPlaceUnsynced();
    warned_ = false;
  } catch (const Error& error) {
    if (!warned_) Log().warn("{}; training goes on without it", error.what());
    warned_ = true;
  }
}

void PrometheusFile::WriteIfDue() {
  if (seconds_() >= due_) Write();
}

}  // namespace syntra
