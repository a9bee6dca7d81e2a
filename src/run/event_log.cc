// SPDX-License-Identifier: Apache-2.0
#include "run/event_log.h"

#include <cmath>

namespace syntra {

EventLog::EventLog(const Path& path, std::function<WallClock::time_point()> now)
    : now_(std::move(now)), lines_(path, [this](std::string_view line) {
        CountEarlier(line);
        return true;
      }) {}

void EventLog::CountEarlier(std::string_view line) {
  const Json json = ParseLine(line);
  const auto event = json.find("event");
  if (event != json.end() && event->is_string()) ++earlier_[event->get<std::string>()];
}

void EventLog::Write(const std::string& event, int64_t step, const Json& facts) {
  Json rest{{"event", event}};
  rest.update(facts);
  lines_.file.Append(LineOf(step, now_(), rest));
}

double RunEvent::seconds(const char* name) const {
  const double value = NumberIn(facts, name);
  return std::isfinite(value) ? value : 0;
}

std::vector<RunEvent> ReadEvents(const Path& path) {
  std::vector<RunEvent> events;
  if (!Exists(path)) return events;
  VisitLines(path, [&](int64_t step, const Json& line) {
    const auto name = line.find("event");
    if (name == line.end() || !name->is_string()) return;
    events.push_back({name->get<std::string>(), step, TimeOf(line), line});
  });
  return events;
}

}  // namespace syntra
