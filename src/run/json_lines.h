// SPDX-License-Identifier: Apache-2.0
// Files of JSON objects, one a line, to which a run appends: metrics.jsonl, events.jsonl
// and samples.jsonl. Every line begins with its step and its time.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "run/append_file.h"

namespace syntra {

// The beginning of a line: {"step":12,"time":"2026-11-20T14:05:09.123Z", with the time in UTC. The
// caller appends the rest.
std::string LineStart(int64_t step, WallClock::time_point time);
// The whole line, with its end; `fields` is an object that is not empty.
std::string LineOf(int64_t step, WallClock::time_point time, const Json& fields);

// The object of a line; null if the line is not a JSON object.
Json ParseLine(std::string_view line);
// The step of such a line; nothing if it is not such a line.
std::optional<int64_t> StepOf(std::string_view line);
// The time of such a line, in seconds since 1970; NaN if it has none.
double TimeOf(const Json& line);
// A number of such a line; NaN for null and for what is not there.
double NumberIn(const Json& line, const std::string& name);

// As NumberIn, but truncated to an integer; `otherwise` if there is no number, or if it is beyond
// 2^53.
int64_t IntegerIn(const Json& line, const std::string& name, int64_t otherwise);

// The step at which a run continues, which decides the lines that it writes again.
struct ResumePoint {
  int64_t step = 0;
  bool evaluates = true;  // at this step

  int64_t first_step() const { return step + 1; }
  int64_t first_evaluation() const { return evaluates ? step : step + 1; }
};

// A file of lines, open to append more.
struct LineAppender {
  // First removes the lines that are not kept, and a last line that a crash cut short. `removed` is
  // called with each whole line that is removed. Problems are warnings.
  LineAppender(const Path& path, const std::function<bool(std::string_view line)>& keeps,
               const std::function<void(std::string_view line)>& removed = {});

  double last_time = NAN;  // of the last whole line that was there
  AppendFile file;
};

// Reads a file to which another process may be appending.
class LineFollower {
 public:
  // Throws Error(kResources) if it cannot be read.
  explicit LineFollower(const Path& path) : file_(File::OpenOwnForRead(path)) {}

  // Returns the next whole line, which is valid until the next call; nothing at the end of the
  // file, which may grow later.
  std::optional<std::string_view> Next();

 private:
  File file_;
  std::string text_;  // what was read; up to `at_` it has been handed out
  size_t at_ = 0;
  // No line ends between `at_` and here. In a damaged file lines may be long, and searching one
  // again after each block would take minutes.
  size_t searched_ = 0;
};

// Calls `visit` with each next line that is JSON and has a step. Returns how many others came.
using VisitLine = std::function<void(int64_t step, const Json& line)>;
int64_t VisitLines(LineFollower& reader, const VisitLine& visit);
// As above, with each line of a file. Throws Error(kResources) if it cannot be read.
int64_t VisitLines(const Path& path, const VisitLine& visit);

}  // namespace syntra
