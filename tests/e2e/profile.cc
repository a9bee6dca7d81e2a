// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/profile.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace syntra {
namespace {

int64_t Nanoseconds(const Json& microseconds) {
  return std::llround(1e3 * microseconds.get<double>());
}

void Nest(std::vector<ProfileEvent>* events) {
  std::ranges::stable_sort(*events, [](const ProfileEvent& a, const ProfileEvent& b) {
    return std::tuple(a.lane, a.begin, -a.end) < std::tuple(b.lane, b.begin, -b.end);
  });
  std::vector<const ProfileEvent*> open;
  for (ProfileEvent& event : *events) {
    while (!open.empty() && (open.back()->lane != event.lane || open.back()->end <= event.begin)) {
      open.pop_back();
    }
    if (!open.empty()) {
      EXPECT_LE(event.end, open.back()->end) << event.name << " ends behind " << open.back()->name;
      event.around = open.back()->name;
    }
    open.push_back(&event);
  }
}

}  // namespace

Path ProfilePath(const Path& run, int rank) {
  return run / fmt::format("profile/rank-{:04}.json", rank);
}

Json ReadProfile(const Path& run, int rank) {
  return ParseJson(ReadWholeFile(ProfilePath(run, rank)));
}

std::vector<ProfileEvent> ProfileEvents(const Path& run, int rank) {
  const Json profile = ReadProfile(run, rank);
  std::vector<ProfileEvent> events;
  for (const Json& json : profile.at("traceEvents")) {
    EXPECT_EQ(json.at("pid"), rank);
    if (json.at("ph") == "M") continue;
    EXPECT_TRUE(json.at("ph") == "X" || json.at("ph") == "i") << json;
    const int64_t begin = Nanoseconds(json.at("ts"));
    const int64_t duration = json.at("ph") == "X" ? Nanoseconds(json.at("dur")) : 0;
    EXPECT_GE(duration, 0) << json;
    events.push_back(
        {json.at("name"), "", json.at("tid"), begin, begin + duration, json.at("args")});
  }
  Nest(&events);
  return events;
}

std::vector<int64_t> StepsOf(const std::vector<ProfileEvent>& events, ProfileLane lane,
                             const std::string& name) {
  std::vector<int64_t> steps;
  for (const ProfileEvent& event : events) {
    if (event.lane == lane && event.name == name) steps.push_back(event.facts.at("step"));
  }
  return steps;
}

int64_t CountOf(const std::vector<ProfileEvent>& events, const std::string& name) {
  return std::ranges::count(events, name, &ProfileEvent::name);
}

}  // namespace syntra
