// SPDX-License-Identifier: Apache-2.0
#include "cli/run_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"
#include "base/utf8.h"
#include "config/config.h"
#include "run/run_history.h"
#include "run/run_status.h"
#include "train/continuation.h"
#include "train/describe.h"
#include "train/run_directory.h"

namespace syntra {
namespace {

// "10.3820 at step 0, 5.7410 at step 400, lowest 5.7300 at step 350".
std::string DescribePoints(const Curve& curve, int decimals, const char* best_name,
                           const PlotPoint& best) {
  const auto at_step = [&](const PlotPoint& point) {
    return fmt::format("{:.{}f} at step {}", point.y, decimals,
                       WithThousands(std::llround(point.x)));
  };
  std::string text = at_step(curve.front());
  if (curve.size() > 1) text += ", " + at_step(curve.back());
  const bool is_last = best.y == curve.back().y;
  if (std::isfinite(best.y) && !is_last) text += fmt::format(", {} {}", best_name, at_step(best));
  return text;
}

// In percent: the more the better.
std::string DescribeMetric(const Curve& curve) {
  const PlotPoint best = *std::ranges::max_element(
      curve, {}, [](const PlotPoint& point) { return std::isnan(point.y) ? -INFINITY : point.y; });
  return DescribePoints(curve, 2, "highest", best);
}

Json PointJson(const Curve& points, size_t i, const char* name) {
  if (points.empty()) return nullptr;
  return {{"step", std::llround(points[i].x)}, {name, points[i].y}};
}

// Its first and its last point.
Json EndsJson(const Curve& points, const char* name = "log_perplexity") {
  return {{"first", PointJson(points, 0, name)},
          {"last", PointJson(points, points.size() - 1, name)}};
}

Json MetricsJson(const RunHistory& history) {
  Json metrics = Json::object();
  for (const auto& [name, curve] : history.metrics) metrics[name] = EndsJson(curve, "value");
  return metrics;
}

Json PhasesJson(const RunHistory& history) {
  Json phases = Json::object();
  for (size_t i = 0; i < kStepPhases.size(); ++i) phases[kStepPhases[i]] = history.phases[i];
  return phases;
}

Json SamplesJson(std::span<const SampleLine> samples) {
  Json list = Json::array();
  for (const SampleLine& sample : samples) {
    Json& json = list.emplace_back(Json{{"step", sample.step}});
    json.update(FieldsOf(sample));
  }
  return list;
}

Json GoodputJson(const Goodput& goodput) {
  Json seconds = Json::object();
  for (const auto& [name, value] : goodput.Parts()) seconds[name] = value;
  return {{"share", goodput.share()},     {"wall_seconds", goodput.wall},
          {"seconds", seconds},           {"restarts", goodput.restarts},
          {"failures", goodput.failures}, {"lost_steps", goodput.lost_steps}};
}

// The last `parts` parts of an absolute path.
std::string LastParts(const Path& path, int parts) {
  Path last;
  for (Path rest = path; parts > 0 && rest.has_filename(); --parts, rest = rest.parent_path()) {
    last = last.empty() ? rest.filename() : rest.filename() / last;
  }
  return last.string();
}

RunReport ReadRunReport(const Path& directory) {
  const RunDirectory run{directory};
  RunReport report{.directory = directory,
                   .name = {},
                   .config = {},
                   .history = ReadRunHistory(run.metrics()),
                   .events = ReadEvents(run.events()),
                   .samples = ReadSampleLines(run.samples()),
                   .goodput = {},
                   .done = false};
  report.config = ConfigOfRun(directory);
  report.goodput = GoodputOf(report.history, report.events);
  report.done = RunStatus(directory).IsDone(report.history.step);
  return report;
}

void NameApart(std::vector<RunReport>* reports) {
  constexpr int kMostParts = 8;
  for (int parts = 1; parts <= kMostParts; ++parts) {
    std::set<std::string> names;
    for (RunReport& report : *reports) {
      const Path whole = std::filesystem::absolute(report.directory / "").lexically_normal();
      report.name = LastParts(whole.parent_path(), parts);
      names.insert(report.name);
    }
    if (names.size() == reports->size()) return;
  }
}

// "...me/accuracy": in at most `longest` characters, if these are more than the dots.
std::string EndOfName(const std::string& name, int longest) {
  constexpr int kDots = 3;
  if (static_cast<int>(CodePointCount(name)) <= longest) return name;
  std::string_view end = name;
  while (static_cast<int>(CodePointCount(end)) + kDots > longest && !end.empty()) {
    end.remove_prefix(1);
    while (!end.empty() && ContinuesCharacter(end.front())) end.remove_prefix(1);
  }
  return "..." + std::string(end);
}

}  // namespace

Config ConfigOfRun(const Path& directory) {
  const Path file = RunDirectory{directory}.config();
  if (!Exists(file)) FailNoRun(directory, file.filename().string());
  constexpr int64_t kMaxBytes = int64_t{16} << 20;
  return ParseConfig(file.string(), ReadWholeFile(file, kMaxBytes, ExitCode::kConfig), {},
                     kForModel);
}

std::vector<RunReport> ReadRunReports(const std::vector<std::string>& directories) {
  std::vector<RunReport> reports;
  for (const std::string& directory : directories) reports.push_back(ReadRunReport(directory));
  NameApart(&reports);
  return reports;
}

PlotPoint LowestOf(const Curve& curve) {
  return *std::ranges::min_element(
      curve, {}, [](const PlotPoint& point) { return std::isnan(point.y) ? INFINITY : point.y; });
}

std::string DescribeCurve(const Curve& curve) {
  return curve.empty() ? "none yet" : DescribePoints(curve, 4, "lowest", LowestOf(curve));
}

NamedTexts DescribeEvaluations(const RunHistory& history) {
  NamedTexts fields;
  if (!history.validation.empty() || history.metrics.empty()) {
    fields.emplace_back("validation", DescribeCurve(history.validation));
  }
  for (const auto& [name, curve] : history.metrics) {
    fields.emplace_back(name, DescribeMetric(curve));
  }
  return fields;
}

std::vector<std::string> FieldLines(const NamedTexts& fields, int longest_name) {
  NamedTexts shown;
  size_t width = 0;
  for (const auto& [name, value] : fields) {
    if (value.empty()) continue;
    shown.emplace_back(EndOfName(name, longest_name), value);
    width = std::max(width, CodePointCount(shown.back().first));
  }
  std::vector<std::string> lines;
  for (const auto& [name, value] : shown) {
    lines.push_back(fmt::format("  {:{}}  {}", name, width, value));
  }
  return lines;
}

std::string DescribeThroughput(const RunHistory& history) {
  if (history.loss.empty()) return "no step yet";
  std::string text = HumanCount(history.tokens_per_second) + " tokens/s";
  if (std::isfinite(history.mfu)) text += fmt::format(", MFU {:.1f}%", 100 * history.mfu);
  text += fmt::format("; {} in {} steps", HumanDuration(history.seconds),
                      WithThousands(static_cast<int64_t>(history.loss.size())));
  if (history.skipped > 0) text += fmt::format(", {} skipped", WithThousands(history.skipped));
  if (history.damaged_lines > 0) {
    text += fmt::format(", {} of metrics.jsonl left out",
                        Counted(history.damaged_lines, "damaged line"));
  }
  return text;
}

std::span<const SampleLine> LastSamples(const RunReport& report) {
  const std::span<const SampleLine> all = report.samples;
  if (all.empty()) return all;
  const auto first = std::ranges::find(all, all.back().step, &SampleLine::step);
  return {first, all.end()};
}

Json ReportJson(const RunReport& report) {
  const RunHistory& history = report.history;
  return {{"directory", report.directory.string()},
          {"model", DescribeModel(report.config.model())},
          {"step", history.step},
          {"steps", report.config.train().steps()},
          {"done", report.done},
          {"seconds", history.seconds},
          {"phase_seconds", PhasesJson(history)},
          {"other_rates", OtherRates(history, report.config)},
          {"goodput", report.goodput ? GoodputJson(*report.goodput) : Json()},
          {"tokens_per_second", history.tokens_per_second},
          {"mfu", history.mfu},
          {"skipped", history.skipped},
          {"damaged_lines", history.damaged_lines},
          {"training", EndsJson(history.loss)},
          {"validation", EndsJson(history.validation)},
          {"metrics", MetricsJson(history)},
          {"samples", SamplesJson(LastSamples(report))}};
}

}  // namespace syntra
