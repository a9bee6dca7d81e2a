// SPDX-License-Identifier: Apache-2.0
// metrics.jsonl and events.jsonl of a run: what is read of them can be described, and a run that
// continues keeps of them whole lines, in their order.
#include <cmath>

#include "fuzz/target.h"
#include "run/event_log.h"
#include "run/goodput.h"
#include "run/metrics_log.h"
#include "run/run_history.h"

namespace syntra {
namespace {

constexpr int64_t kResumed = 5;

void Describe(const Path& path) {
  const RunHistory history = ReadRunHistory(path);
  const std::vector<RunEvent> events = ReadEvents(path);
  DescribePhases(history);
  if (const auto goodput = GoodputOf(history, events)) {
    SYNTRA_CHECK(goodput->wall > 0);
    Describe(*goodput);
  }
}

// Whether the lines of `part` are lines of `text`, in their order.
bool HasLines(std::string_view text, std::string_view part) {
  while (!part.empty()) {
    const std::string_view wanted = part.substr(0, part.find('\n') + 1);
    const std::string_view line = text.substr(0, text.find('\n') + 1);  // npos + 1 is 0
    if (line.empty()) return false;
    if (line == wanted) part.remove_prefix(wanted.size());
    text.remove_prefix(line.size());
  }
  return true;
}

void Continue(std::string_view input) {
  const Path path = InputFile(input, "continued.jsonl");
  MetricsLog(path, {kResumed}).Write(kResumed + 1, {{"loss", 1.5}, {"seconds", NAN}});
  const std::string text = ReadWholeFile(path);
  const size_t last = text.rfind('\n', text.size() - 2) + 1;  // npos + 1 is 0
  SYNTRA_CHECK(HasLines(input, std::string_view(text).substr(0, last)), "{}", text);
  SYNTRA_CHECK(StepOf(std::string_view(text).substr(last, text.size() - last - 1)) == kResumed + 1);
  SYNTRA_CHECK(ReadRunHistory(path).step == kResumed + 1);
  EventLog(InputFile(input, "events.jsonl")).Write("save", kResumed, {{"seconds", 0.5}});
  SYNTRA_CHECK(!ReadEvents(InputDirectory() / "events.jsonl").empty());
}

void Run(std::string_view input) {
  Describe(InputFile(input, "lines.jsonl"));
  Continue(input);
}

std::vector<std::string> Seeds() {
  const std::string metrics =
      R"({"step":1,"time":"2026-11-20T14:05:09.123Z","loss":9.5,"seconds":0.5,"forward_seconds":0.2,"skipped":0}
{"step":5,"time":"2026-11-20T14:05:19.000Z","validation_log_perplexity":4.25,"cola/matthews":12}
{"step":6,"time":"2026-11-20T14:05:29.000Z","loss":null,"seconds":0.5,"slowest_rank":1,"slowest_rank_seconds":0.1}
)";
  const std::string events =
      R"({"step":0,"time":"2026-11-20T14:05:09.123Z","event":"start","seconds":1.5,"ranks":2}
{"step":5,"time":"2026-11-20T14:06:09.123Z","event":"save","seconds":0.25}
{"step":5,"time":"2026-11-20T14:07:09.123Z","event":"start","seconds":1.5,"lost_steps":1,"lost_seconds":2,"idle_seconds":3}
)";
  return {"", metrics, events, metrics + "{\"step\":7,\"ti"};
}

}  // namespace

const Target fuzz_run_lines = {
    .name = "run_lines",
    .refusals = {},
    .run = Run,
    .seeds = Seeds,
    .tokens = {"{\"step\":", "\"time\":\"2026-11-20T14:05:09.123Z\"", "\"event\":\"start\"",
               "\"loss\":", "\"slowest_rank\":", "\"lost_steps\":", "1e300", "-1",
               "9223372036854775807", "null", "\"2147483647-2147483647-", "\n", "[", "{"},
    .mutations = 1000};

}  // namespace syntra
