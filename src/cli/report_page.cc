// SPDX-License-Identifier: Apache-2.0
#include "cli/report_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>

#include "base/text.h"
#include "cli/page.h"
#include "cli/pictures.h"
#include "cli/report_tables.h"

namespace syntra {
namespace {

using Reports = std::vector<RunReport>;

// "" if all curves are empty.
std::string CurvesOf(const Reports& reports, const std::string& y_name,
                     const std::function<Curve(const RunHistory&)>& curve_of) {
  std::vector<NamedCurve> curves;
  for (const RunReport& report : reports) {
    NamedCurve curve{report.name, curve_of(report.history)};
    if (!curve.points.empty()) curves.push_back(std::move(curve));
  }
  return curves.empty() ? "" : CurvesSvg(curves, "training steps", y_name);
}

std::string CurvesNamed(const Reports& reports, const std::string& y_name,
                        const std::string& name) {
  return CurvesOf(reports, y_name,
                  [&](const RunHistory& history) { return CurveNamed(history.curves, name); });
}

// Without the value before training, on whose scale all that comes later would be one line.
std::string Validation(const Reports& reports) {
  return CurvesOf(reports, "validation log-perplexity", [](const RunHistory& history) {
    Curve curve = history.validation;
    std::erase_if(curve, [](const PlotPoint& point) { return point.x == 0; });
    return curve;
  });
}

std::string Training(const Reports& reports) {
  return CurvesOf(reports, "training log-perplexity",
                  [](const RunHistory& history) { return history.loss; });
}

std::string Throughput(const Reports& reports) {
  return CurvesNamed(reports, "tokens a second", "tokens_per_second");
}

std::string LearningRatePicture(const Reports& reports) {
  return CurvesNamed(reports, "learning rate", "learning_rate");
}

std::string GradientNorm(const Reports& reports) {
  return CurvesNamed(reports, "norm of the gradients", "grad_norm");
}

// A bar for each report of which `parts_of` gives any.
std::string BarsOf(const Reports& reports, const std::string& unit,
                   const std::function<NamedValues(const RunReport&)>& parts_of) {
  std::vector<NamedBar> bars;
  for (const RunReport& report : reports) {
    NamedBar bar{report.name, parts_of(report)};
    if (!bar.parts.empty()) bars.push_back(std::move(bar));
  }
  return bars.empty() ? "" : BarsSvg(bars, unit);
}

std::string Phases(const Reports& reports) {
  return BarsOf(reports, "milliseconds of a step, mean", [](const RunReport& report) {
    const RunHistory& history = report.history;
    NamedValues parts = PhasesOf(history);
    for (NamedValue& part : parts) {
      part.value *= 1e3 / static_cast<double>(history.loss.size());
    }
    return parts;
  });
}

std::string Time(const Reports& reports) {
  return BarsOf(reports, "% of the time since the first start", [](const RunReport& report) {
    NamedValues parts;
    if (!report.goodput) return parts;
    parts = report.goodput->Parts();
    for (NamedValue& part : parts) part.value *= 100 / report.goodput->wall;
    return parts;
  });
}

std::string Events(const Reports& reports) {
  std::vector<NamedEvents> runs;
  for (const RunReport& report : reports) {
    if (!report.events.empty()) runs.push_back({report.name, report.events});
  }
  return runs.empty() ? "" : EventsSvg(runs);
}

struct NamedPicture {
  const char* name;
  const char* title;
  std::string (*draw)(const Reports& reports);  // "" if no run has what it shows
};

constexpr NamedPicture kPictures[] = {
    {"validation", "Log-perplexity on the validation split, in nats a token", Validation},
    {"training", "Log-perplexity in training, in nats a token", Training},
    {"throughput", "Throughput", Throughput},
    {"phases", "Phases of a step", Phases},
    {"time", "Where the time went", Time},
    {"events", "Events", Events},
    {"learning_rate", "Learning rate", LearningRatePicture},
    {"gradient_norm", "Norm of the gradients before clipping", GradientNorm},
};

std::set<std::string> MetricNamesOf(const Reports& reports) {
  std::set<std::string> names;
  for (const RunReport& report : reports) {
    for (const auto& [name, curve] : report.history.metrics) names.insert(name);
  }
  return names;
}

// "" if no run has it.
std::string MetricPicture(const Reports& reports, const std::string& name) {
  return CurvesOf(reports, name,
                  [&](const RunHistory& history) { return CurveNamed(history.metrics, name); });
}

std::string MetricPictures(const Reports& reports) {
  std::string html;
  for (const std::string& name : MetricNamesOf(reports)) {
    html += HtmlHeading(name) + HtmlPicture(MetricPicture(reports, name));
  }
  return html;
}

}  // namespace

std::vector<std::string> PictureNames() {
  std::vector<std::string> names;
  for (const NamedPicture& picture : kPictures) names.emplace_back(picture.name);
  return names;
}

std::string ReportPicture(const std::vector<RunReport>& reports, const std::string& name) {
  const auto picture = std::ranges::find(kPictures, name, &NamedPicture::name);
  std::string svg =
      picture == std::end(kPictures) ? MetricPicture(reports, name) : picture->draw(reports);
  if (svg.empty()) {
    std::vector<std::string> others;
    for (const NamedPicture& other : kPictures) {
      if (!other.draw(reports).empty()) others.emplace_back(other.name);
    }
    std::ranges::copy(MetricNamesOf(reports), std::back_inserter(others));
    Fail(ExitCode::kConfig, "none of these runs has what the picture \"{}\" shows; --picture: {}",
         name, others.empty() ? "there is none yet" : Join(others, ", "));
  }
  return svg;
}

std::string ReportPage(const std::vector<RunReport>& reports) {
  std::string body = RunTable(reports) + RunList(reports);
  for (const NamedPicture& picture : kPictures) {
    const std::string svg = picture.draw(reports);
    if (!svg.empty()) body += HtmlHeading(picture.title) + HtmlPicture(svg);
    if (std::string_view(picture.name) == "validation") body += MetricPictures(reports);
    if (std::string_view(picture.name) == "events") body += EventTable(reports);
  }
  std::vector<std::string> names;
  for (const RunReport& report : reports) names.push_back(report.name);
  return HtmlPage(Join(names, ", "), body + SampleTables(reports) + Configurations(reports));
}

}  // namespace syntra
