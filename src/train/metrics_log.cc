// SPDX-License-Identifier: Apache-2.0
#include "train/metrics_log.h"

#include <fmt/format.h>

#include <cmath>
#include <ctime>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"

namespace syntra {
namespace {

constexpr std::string_view kLineStart = "{\"step\":";

// The step of a line of this log; false if it is not one.
bool StepOf(std::string_view line, int64_t* step) {
  if (!line.starts_with(kLineStart) || !line.ends_with('}')) return false;
  line.remove_prefix(kLineStart.size());
  return ParseInt64(line.substr(0, line.find_first_of(",}")), step);
}

// Whether a line holds an evaluation: no loss of training in it.
bool IsEvaluation(std::string_view line) { return line.find("\"validation_") != line.npos; }

// Bytes of `text` up to the first line that a run resumed at `resumed_step` writes again, or that
// has no end.
size_t KeptBytes(std::string_view text, int64_t resumed_step) {
  size_t kept = 0;
  while (kept < text.size()) {
    const size_t end = text.find('\n', kept);
    if (end == std::string_view::npos) break;
    int64_t step = 0;
    const std::string_view line = text.substr(kept, end - kept);
    // A line that means nothing, perhaps a user's, is not ours to remove.
    if (StepOf(line, &step) &&
        (step > resumed_step || (step == resumed_step && IsEvaluation(line)))) {
      break;
    }
    kept = end + 1;
  }
  return kept;
}

const Path& CutAfter(const Path& path, int64_t resumed_step) {
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return path;
  try {
    // Refuses a link, which must not be cut.
    File log = File::OpenForAppend(path);
    const MappedFile map(path);
    const auto bytes = map.bytes();
    const size_t kept =
        KeptBytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, resumed_step);
    if (kept == bytes.size()) return path;
    Log().info("{}: dropped {} bytes after step {}", path.string(), bytes.size() - kept,
               resumed_step);
    log.Truncate(static_cast<int64_t>(kept));
  } catch (const std::exception& error) {
    Log().warn("{} may repeat steps: {}", path.string(), error.what());
  }
  return path;
}

// ISO 8601 with milliseconds.
std::string UtcText(MetricsLog::Clock::time_point time) {
  using std::chrono::floor, std::chrono::milliseconds;
  const auto since_1970 = floor<milliseconds>(time).time_since_epoch();
  const std::time_t seconds = floor<std::chrono::seconds>(since_1970).count();
  std::tm utc = {};
  gmtime_r(&seconds, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", utc.tm_year + 1900,
                     utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                     (since_1970 - std::chrono::seconds(seconds)).count());
}

void AddField(std::string* line, std::string_view name, double value) {
  fmt::format_to(std::back_inserter(*line), ",{}:", JsonText(name));
  if (std::isfinite(value)) {
    fmt::format_to(std::back_inserter(*line), "{}", value);
  } else {
    *line += "null";
  }
}

}  // namespace

MetricsLog::MetricsLog(const Path& path, int64_t resumed_step,
                       std::function<Clock::time_point()> now)
    : now_(std::move(now)), file_(CutAfter(path, resumed_step)) {}

void MetricsLog::Write(int64_t step, const NamedValues& values) {
  std::string line = fmt::format("{}{},\"time\":\"{}\"", kLineStart, step, UtcText(now_()));
  for (const auto& [name, value] : values) AddField(&line, name, value);
  line += "}\n";
  file_.Append(line);
}

}  // namespace syntra
