// SPDX-License-Identifier: Apache-2.0
#include "run/trace.h"

#include <gtest/gtest.h>

#include <map>

namespace syntra {
namespace {

using std::chrono::nanoseconds;

// Events by name; the metadata by name, thread and value, too.
std::map<std::string, Json> EventsOf(const Json& trace) {
  std::map<std::string, Json> events;
  for (const Json& event : trace.at("traceEvents")) {
    std::string name = event.at("name");
    if (event.at("ph") == "M") name += " " + event.at("args").begin()->dump();
    EXPECT_TRUE(events.emplace(name, event).second) << name << " twice";
  }
  return events;
}

TEST(Trace, HasNamesSpansAndInstants) {
  const double origin = UnixSeconds();
  Trace trace(origin);
  const auto begin = Clock::now();
  trace.Add(TraceLane::kTraining, "a \"quoted\" name", begin, begin + nanoseconds(1234567),
            {{"bytes", 12}});
  trace.AddInstant(TraceLane::kCheckpoint, "now", begin + nanoseconds(1), Json::object());
  const Json json = ParseJson(trace.Text(3, "rank 3", {{"run", "0123"}}));
  EXPECT_EQ(json.at("otherData").at("run"), "0123");
  const auto events = EventsOf(json);
  for (const char* name : {"process_name \"rank 3\"", "thread_name \"training\"",
                           "thread_name \"data\"", "thread_name \"checkpoint\""}) {
    ASSERT_TRUE(events.contains(name)) << name;
    EXPECT_EQ(events.at(name).at("pid"), 3);
  }
  const Json& span = events.at("a \"quoted\" name");
  EXPECT_EQ(span.at("ph"), "X");
  EXPECT_EQ(span.at("tid"), 0);
  EXPECT_EQ(span.at("dur"), 1234.567);
  EXPECT_EQ(span.at("args").at("bytes"), 12);
  // Microseconds since the origin, which was just now.
  EXPECT_GE(span.at("ts"), -1e3);
  EXPECT_LT(span.at("ts"), 60e6);
  const Json& instant = events.at("now");
  EXPECT_EQ(instant.at("ph"), "i");
  EXPECT_EQ(instant.at("tid"), 2);
  EXPECT_FALSE(instant.contains("dur"));
  EXPECT_NEAR(instant.at("ts").get<double>() - span.at("ts").get<double>(), 0.001, 1e-6);
}

// Another process that began at another time has the same origin.
TEST(Trace, ProcessesShareTheOrigin) {
  Trace early(1e9), late(1e9 + 100);
  const auto at = Clock::now();
  early.AddInstant(TraceLane::kTraining, "x", at, Json::object());
  late.AddInstant(TraceLane::kTraining, "x", at, Json::object());
  const auto time = [](const Trace& trace) -> double {
    return EventsOf(ParseJson(trace.Text(0, "", Json::object()))).at("x").at("ts");
  };
  EXPECT_NEAR(time(early) - time(late), 100e6, 1e5);
}

TEST(Trace, WhatIsOpenEndsWithTheFile) {
  const auto trace = std::make_shared<Trace>(UnixSeconds());
  auto open = std::make_optional<TraceSpan>(trace, TraceLane::kData, "open", 7);
  { const TraceSpan closed(trace, TraceLane::kTraining, "closed", 6); }
  auto events = EventsOf(ParseJson(trace->Text(0, "", Json::object())));
  EXPECT_EQ(events.at("open").at("args").at("step"), 7);
  EXPECT_EQ(events.at("open").at("args").at("unfinished"), true);
  EXPECT_GE(events.at("open").at("dur"), events.at("closed").at("dur"));
  EXPECT_FALSE(events.at("closed").at("args").contains("unfinished"));
  open.reset();
  events = EventsOf(ParseJson(trace->Text(0, "", Json::object())));
  EXPECT_FALSE(events.at("open").at("args").contains("unfinished"));
  const TraceSpan nothing(nullptr, TraceLane::kData, "nothing", 1);
}

}  // namespace
}  // namespace syntra
