// SPDX-License-Identifier: Apache-2.0
#include "run/event_log.h"

#include <cmath>

#include "tests/base/captured_log.h"
#include "tests/base/scratch.h"
#include "tests/run/fixed_time.h"

namespace syntra {
namespace {

TEST(EventLog, StepTimeEventAndFacts) {
  const Path path = ScratchDirectory("events") / "events.jsonl";
  EventLog log(path, FixedTime);
  log.Write("start", 0, {{"host", "a\"b"}, {"seconds", 0.5}});
  log.Write("skip", 3);
  EXPECT_EQ(ReadWholeFile(path),
            "{\"step\":0,\"time\":\"2023-11-14T22:13:20.045Z\",\"event\":\"start\","
            "\"host\":\"a\\\"b\",\"seconds\":0.5}\n"
            "{\"step\":3,\"time\":\"2023-11-14T22:13:20.045Z\",\"event\":\"skip\"}\n");
  const std::vector<RunEvent> events = ReadEvents(path);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].name, "start");
  EXPECT_EQ(events[0].time, 1700000000.045);
  EXPECT_EQ(events[0].seconds(), 0.5);
  EXPECT_EQ(events[1].step, 3);
  EXPECT_EQ(events[1].seconds(), 0);
}

// However far the last line came; what was whole stays.
TEST(EventLog, GoesOnBehindALineThatWasCutShort) {
  const Path path = ScratchDirectory("events-cut") / "events.jsonl";
  {
    EventLog log(path, FixedTime);
    EXPECT_TRUE(std::isnan(log.last_time()));
    log.Write("save", 5);
    log.Write("save", 10);
  }
  const std::string whole = ReadWholeFile(path);
  const size_t second = whole.find('\n') + 1;
  for (size_t length = second; length <= whole.size(); ++length) {
    ReplaceFileDurably(path, whole.substr(0, length));
    EventLog log(path, FixedTime);
    EXPECT_EQ(log.last_time(), 1700000000.045);
    EXPECT_EQ(log.earlier().at("save"), length == whole.size() ? 2 : 1);
    log.Write("done", 12);
    const std::vector<RunEvent> events = ReadEvents(path);
    ASSERT_EQ(events.size(), length == whole.size() ? 3u : 2u);
    ASSERT_EQ(events.back().name, "done");
  }
}

TEST(EventLog, LinesOfOthersAreNoEvents) {
  const Path path = ScratchDirectory("events-foreign") / "events.jsonl";
  ReplaceFileDurably(path,
                     "# note\n{\"step\":1}\n[1]\n{\"step\":1,\"event\":7}\n{\"event\":\"x\"}\n"
                     "{\"step\":2,\"event\":\"save\",\"seconds\":null}\n");
  const std::vector<RunEvent> events = ReadEvents(path);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_TRUE(std::isnan(events[0].time));
  EXPECT_EQ(events[0].seconds(), 0);
  EXPECT_TRUE(ReadEvents(path.parent_path() / "none").empty());
}

TEST(EventLog, FullDiskWarnsOnce) {
  const CapturedLog captured;
  EventLog log("/dev/full");
  log.Write("save", 1);
  log.Write("save", 2);
  // What may be in it cannot be read, and nothing can be appended.
  EXPECT_EQ(captured.Warnings().size(), 2u);
  EventLog("/nonexistent/events.jsonl").Write("save", 1);
  ASSERT_EQ(captured.Warnings().size(), 3u);
  EXPECT_NE(captured.Warnings().back().find("/nonexistent/events.jsonl"), std::string::npos);
}

// What another process appends later, a line's first half among it.
TEST(LineFollower, HandsOutWholeLinesAsTheyCome) {
  const Path path = ScratchDirectory("line-reader") / "lines";
  File file = File::OpenForAppend(path);
  file.Write("one\ntw");
  LineFollower reader(path);
  EXPECT_EQ(reader.Next(), "one");
  EXPECT_EQ(reader.Next(), std::nullopt);
  file.Write("o\n");
  EXPECT_EQ(reader.Next(), "two");
  const std::string longest(200000, 'x');
  file.Write(longest + "\n\nlast\n");
  EXPECT_EQ(reader.Next(), longest);
  EXPECT_EQ(reader.Next(), "");
  EXPECT_EQ(reader.Next(), "last");
  EXPECT_EQ(reader.Next(), std::nullopt);
}

TEST(LineTimes, AreReadBack) {
  const auto time_of = [](const char* time) { return TimeOf(Json{{"time", time}}); };
  EXPECT_EQ(time_of("1970-01-01T00:00:00.000Z"), 0);
  EXPECT_EQ(time_of("2024-02-29T12:00:00.250Z"), 1709208000.25);
  EXPECT_TRUE(std::isnan(time_of("yesterday")));
  EXPECT_TRUE(std::isnan(TimeOf(Json{{"time", 7}})));
  EXPECT_TRUE(std::isnan(TimeOf(Json::object())));
}

}  // namespace
}  // namespace syntra
