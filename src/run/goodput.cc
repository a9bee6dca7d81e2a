// SPDX-License-Identifier: Apache-2.0
#include "run/goodput.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/text.h"

namespace syntra {
namespace {

bool EndsInOrder(const std::string& event) { return event == "stop" || event == "done"; }

// `last`: the event before.
void AddStart(const RunEvent& event, bool first, const std::string& last, Goodput* goodput) {
  goodput->start += event.seconds();
  if (first) return;
  const bool rolled_back = last == "rollback";  // in the same process
  goodput->restarts += !rolled_back;
  goodput->failures += !rolled_back && !EndsInOrder(last);
  goodput->idle += event.seconds("idle_seconds");
  goodput->lost += event.seconds("lost_seconds");
  goodput->lost_steps += IntegerIn(event.facts, "lost_steps", 0);
}

std::string Percent(double share) { return fmt::format("{:.1f}%", 100 * share); }

// "forward 29.1%", unless that is nothing.
void AddShare(const std::string& name, double share, std::vector<std::string>* parts) {
  if (share >= 0.0005) parts->push_back(name + " " + Percent(share));
}

}  // namespace

NamedValues Goodput::Parts() const {
  NamedValues parts{{"useful steps", useful},
                    {"skipped steps", skipped},
                    {"lost steps", lost},
                    {"evaluation", evaluation},
                    {"saves", save},
                    {"start", start},
                    {"idle", idle}};
  const double known =
      std::accumulate(parts.begin(), parts.end(), 0.0,
                      [](double sum, const NamedValue& part) { return sum + part.value; });
  parts.push_back({"other", std::max(0.0, wall - known)});
  return parts;
}

std::optional<Goodput> GoodputOf(const RunHistory& history, std::span<const RunEvent> events) {
  Goodput goodput;
  double begin = NAN, end = history.last_time;
  std::string last;
  for (const RunEvent& event : events) {
    if (event.name == "start") {
      const bool first = std::isnan(begin);
      AddStart(event, first, last, &goodput);
      if (first) begin = event.time - event.seconds();
    }
    if (event.name == "evaluation") goodput.evaluation += event.seconds();
    if (event.name.starts_with("save")) goodput.save += event.seconds();
    end = std::fmax(end, event.time);
    last = event.name;
  }
  goodput.skipped = history.skipped_seconds;
  goodput.useful = history.seconds - history.skipped_seconds;
  goodput.wall = end - begin;
  if (!(goodput.wall > 0 && goodput.useful <= goodput.wall)) return std::nullopt;
  return goodput;
}

std::string Describe(const Goodput& goodput) {
  std::string text = fmt::format("{} of {} in useful steps", Percent(goodput.share()),
                                 HumanDuration(goodput.wall));
  if (goodput.restarts > 0) {
    text += fmt::format("; {}", Counted(goodput.restarts, "restart"));
    if (goodput.failures > 0) text += fmt::format(" ({} after a failure)", goodput.failures);
    text += fmt::format(", {} lost", Counted(goodput.lost_steps, "step"));
  }
  std::vector<std::string> parts;
  for (const auto& [name, seconds] : goodput.Parts()) {
    if (name != "useful steps") AddShare(name, seconds / goodput.wall, &parts);
  }
  return parts.empty() ? text : text + "; " + Join(parts, ", ");
}

NamedValues PhasesOf(const RunHistory& history) {
  const double measured = std::accumulate(history.phases.begin(), history.phases.end(), 0.0);
  if (!(measured > 0 && history.seconds > 0)) return {};
  NamedValues phases;
  for (size_t i = 0; i < kStepPhases.size(); ++i) {
    phases.push_back({kStepPhases[i], history.phases[i]});
  }
  phases.push_back({"other", std::max(0.0, history.seconds - measured)});
  return phases;
}

std::string DescribePhases(const RunHistory& history) {
  std::vector<std::string> parts;
  for (const auto& [name, seconds] : PhasesOf(history)) {
    AddShare(name, seconds / history.seconds, &parts);
  }
  return Join(parts, ", ");
}

}  // namespace syntra
