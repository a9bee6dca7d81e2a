// SPDX-License-Identifier: Apache-2.0
#include "train/run_history.h"

#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/json.h"

namespace syntra {
namespace {

std::optional<Json> MetricsOf(std::string_view line) {
  Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer()) return {};
  return json;
}

// NaN for null and for what is not there.
double Number(const Json& line, const char* name) {
  const auto it = line.find(name);
  return it != line.end() && it->is_number() ? it->get<double>() : NAN;
}

}  // namespace

void VisitMetrics(const Path& metrics,
                  const std::function<void(int64_t step, const Json& line)>& visit) {
  const MappedFile file(metrics);
  std::string_view rest(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const auto line = MetricsOf(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line) visit(line->at("step"), *line);
  }
}

RunHistory ReadRunHistory(const Path& metrics) {
  std::error_code code;
  if (!std::filesystem::exists(metrics, code)) {
    Fail(ExitCode::kConfig, "{} is not there: is {} the directory of a run that has begun?",
         metrics.string(), metrics.parent_path().string());
  }
  RunHistory history;
  double tokens = 0, used = 0;  // mfu times seconds
  VisitMetrics(metrics, [&](int64_t step, const Json& line) {
    const auto x = static_cast<double>(step);
    if (line.contains("validation_log_perplexity")) {
      history.validation.push_back({x, Number(line, "validation_log_perplexity")});
    }
    if (!line.contains("loss")) return;
    history.step = step;
    history.loss.push_back({x, Number(line, "loss")});
    const double seconds = Number(line, "seconds");
    history.seconds += seconds;
    tokens += Number(line, "tokens_per_second") * seconds;
    used += Number(line, "mfu") * seconds;
    history.skipped += Number(line, "skipped") > 0;
  });
  if (history.seconds > 0) {
    history.tokens_per_second = tokens / history.seconds;
    history.mfu = used / history.seconds;
  }
  return history;
}

}  // namespace syntra
