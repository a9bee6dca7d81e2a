// SPDX-License-Identifier: Apache-2.0
#include "run/json_lines.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <ctime>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"

namespace syntra {
namespace {

constexpr std::string_view kLineStart = "{\"step\":";
constexpr double kMostExact = 0x1p53;  // up to here a double holds every integer

// Calls `visit` with each whole line and its offset; returns where the last one ends.
size_t VisitWholeLines(std::string_view text,
                       const std::function<void(size_t begin, std::string_view line)>& visit) {
  size_t begin = 0;
  for (size_t end = 0; (end = text.find('\n', begin)) != text.npos; begin = end + 1) {
    visit(begin, text.substr(begin, end - begin));
  }
  return begin;
}

// The time of the last whole line of `text`.
double LastTime(std::string_view text) {
  const size_t end = text.rfind('\n');
  if (end == text.npos) return NAN;
  const size_t begin = text.substr(0, end).rfind('\n') + 1;  // npos + 1 is 0
  return TimeOf(ParseLine(text.substr(begin, end - begin)));
}

// Returns the time of the last line that was there.
double CutLines(const Path& path, const std::function<bool(std::string_view)>& keeps,
                const std::function<void(std::string_view)>& removed) {
  // Refuses a link, which must not be cut.
  File file = File::OpenForAppend(path);
  const MappedFile map(path);
  const auto bytes = map.bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const double last_time = LastTime(text);
  std::optional<size_t> cut;  // where the first line that is removed begins
  std::string kept_behind;
  const size_t whole = VisitWholeLines(text, [&](size_t begin, std::string_view line) {
    if (!keeps(line)) {
      cut = cut.value_or(begin);
      if (removed) removed(line);
    } else if (cut) {
      kept_behind.append(line).push_back('\n');
    }
  });
  const size_t kept = cut.value_or(whole);
  if (kept == text.size()) return last_time;
  Log().info("{}: removed {} ({} bytes)", path.string(),
             cut ? "the lines of steps and evaluations that are done again" : "an incomplete line",
             text.size() - kept - kept_behind.size());
  if (kept_behind.empty()) {
    file.Truncate(static_cast<int64_t>(kept));
  } else {
    ReplaceFileDurably(path, std::string(text.substr(0, kept)) + kept_behind);
  }
  return last_time;
}

double TryToCutLines(const Path& path, const std::function<bool(std::string_view)>& keeps,
                     const std::function<void(std::string_view)>& removed) {
  try {
    if (Exists(path)) return CutLines(path, keeps, removed);
  } catch (const Error& error) {
    Log().warn("{} may repeat lines: {}", path.string(), error.what());
  }
  return NAN;
}

}  // namespace

// ISO 8601 with milliseconds.
std::string LineStart(int64_t step, WallClock::time_point time) {
  using std::chrono::floor, std::chrono::milliseconds;
  const auto since_1970 = floor<milliseconds>(time).time_since_epoch();
  const std::time_t seconds = floor<std::chrono::seconds>(since_1970).count();
  std::tm utc = {};
  gmtime_r(&seconds, &utc);
  return fmt::format("{}{},\"time\":\"{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z\"", kLineStart,
                     step, utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min,
                     utc.tm_sec, (since_1970 - std::chrono::seconds(seconds)).count());
}

std::string LineOf(int64_t step, WallClock::time_point time, const Json& fields) {
  // Without the opening brace.
  return LineStart(step, time) + "," + JsonText(fields).substr(1) + "\n";
}

Json ParseLine(std::string_view line) {
  Json json = TryParseJson(line);
  return json.is_object() ? json : Json();
}

std::optional<int64_t> StepOf(std::string_view line) {
  if (!line.starts_with(kLineStart) || !line.ends_with('}')) return std::nullopt;
  line.remove_prefix(kLineStart.size());
  int64_t step = 0;
  if (!ParseInt64(line.substr(0, line.find_first_of(",}")), &step)) return std::nullopt;
  return step;
}

double TimeOf(const Json& line) {
  const auto it = line.find("time");
  if (it == line.end() || !it->is_string()) return NAN;
  // No number has so many digits that it overflows.
  std::tm utc = {};
  int milliseconds = 0;
  if (std::sscanf(it->get_ref<const std::string&>().c_str(), "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ",
                  &utc.tm_year, &utc.tm_mon, &utc.tm_mday, &utc.tm_hour, &utc.tm_min, &utc.tm_sec,
                  &milliseconds) != 7) {
    return NAN;
  }
  utc.tm_year -= 1900;
  utc.tm_mon -= 1;
  return static_cast<double>(timegm(&utc)) + 1e-3 * milliseconds;
}

double NumberIn(const Json& line, const std::string& name) {
  const auto it = line.find(name);
  return it != line.end() && it->is_number() ? it->get<double>() : NAN;
}

int64_t IntegerIn(const Json& line, const std::string& name, int64_t otherwise) {
  const double value = NumberIn(line, name);
  return std::abs(value) <= kMostExact ? static_cast<int64_t>(value) : otherwise;
}

LineAppender::LineAppender(const Path& path, const std::function<bool(std::string_view)>& keeps,
                           const std::function<void(std::string_view)>& removed)
    : last_time(TryToCutLines(path, keeps, removed)), file(path) {}

std::optional<std::string_view> LineFollower::Next() {
  size_t end = 0;
  while ((end = text_.find('\n', searched_)) == text_.npos) {
    text_.erase(0, at_);
    at_ = 0;
    searched_ = text_.size();
    std::vector<std::byte> block(size_t{1} << 16);
    const size_t count = file_.Read(block);
    if (count == 0) return std::nullopt;
    text_.append(reinterpret_cast<const char*>(block.data()), count);
  }
  const std::string_view line = std::string_view(text_).substr(at_, end - at_);
  at_ = searched_ = end + 1;
  return line;
}

int64_t VisitLines(LineFollower& reader, const VisitLine& visit) {
  int64_t others = 0;
  while (const auto line = reader.Next()) {
    const Json json = ParseLine(*line);
    const auto member = json.find("step");
    const auto step = member == json.end() ? std::nullopt : AsInteger(*member);
    if (step) {
      visit(*step, json);
    } else {
      ++others;
    }
  }
  return others;
}

int64_t VisitLines(const Path& path, const VisitLine& visit) {
  LineFollower reader(path);
  return VisitLines(reader, visit);
}

}  // namespace syntra
