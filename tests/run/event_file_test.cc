// SPDX-License-Identifier: Apache-2.0
#include "run/event_file.h"

#include <cmath>
#include <cstring>

#include "run/event.pb.h"
#include "tests/base/captured_log.h"
#include "tests/base/scratch.h"

namespace syntra {
namespace {

// crc32c by its definition, apart from the library that the writer uses.
uint32_t SlowMaskedCrc(std::string_view data) {
  uint32_t crc = ~uint32_t{0};
  for (const char c : data) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ 0x82F63B78u : crc >> 1;
  }
  crc = ~crc;
  return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

template <typename T>
T Number(std::string_view bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

std::vector<tensorboard::Event> EventsIn(const Path& path) {
  const std::string content = ReadWholeFile(path);
  std::vector<tensorboard::Event> events;
  for (std::string_view rest = content; !rest.empty();) {
    const auto length = Number<uint64_t>(rest);
    EXPECT_EQ(Number<uint32_t>(rest.substr(8)), SlowMaskedCrc(rest.substr(0, 8)));
    const std::string_view data = rest.substr(12, length);
    EXPECT_EQ(Number<uint32_t>(rest.substr(12 + length)), SlowMaskedCrc(data));
    EXPECT_TRUE(events.emplace_back().ParseFromString(std::string(data)));
    rest.remove_prefix(length + 16);
  }
  return events;
}

TEST(EventFile, HasTheseBytes) {
  const EventFile file(ScratchDirectory("event-bytes"), 0, [] { return 1.5e9; });
  const std::string content = ReadWholeFile(file.path());
  const std::string expected(
      "\x18\0\0\0\0\0\0\0\xA3\x7FK\""  // frame
      "\x09\0\0\0\xC0\x0B\x5A\xD6\x41\x1A\x0D"
      "brain.Event:2",  // wall time, file version
      36);
  EXPECT_EQ(content.substr(0, 36), expected);
}

TEST(EventFile, ReadsBack) {
  double now = 1.7e9;
  const Path directory = ScratchDirectory("events") / "tb";
  EventFile file(directory, 11, [&] { return now; });
  EXPECT_EQ(file.path().filename().string().substr(0, 31), "events.out.tfevents.1700000000.");
  now += 1;
  file.Write(11, {{"loss", 2.5}, {"grad_norm", 0}});
  file.Write(1000000000000, {{"validation/loss", -1e-3}});

  const auto events = EventsIn(file.path());
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].file_version(), "brain.Event:2");
  EXPECT_EQ(events[1].step(), 11);
  EXPECT_EQ(events[1].session_log().status(), tensorboard::SessionLog::START);
  EXPECT_EQ(events[2].wall_time(), 1.7e9 + 1);
  EXPECT_EQ(events[2].step(), 11);
  ASSERT_EQ(events[2].summary().value_size(), 2);
  EXPECT_EQ(events[2].summary().value(0).tag(), "loss");
  EXPECT_EQ(events[2].summary().value(0).simple_value(), 2.5f);
  // Zero is written, not left out.
  EXPECT_EQ(events[2].summary().value(1).value_case(), tensorboard::Summary::Value::kSimpleValue);
  EXPECT_EQ(events[3].step(), 1000000000000);
  EXPECT_EQ(events[3].summary().value(0).simple_value(), -1e-3f);
}

// As metrics.jsonl writes null.
TEST(EventFile, WhatIsNotFiniteIsLeftOut) {
  EventFile file(ScratchDirectory("events-finite"), 1);
  file.Write(1, {{"mfu", NAN}, {"loss", 2}, {"grad_norm", INFINITY}});
  const auto events = EventsIn(file.path());
  ASSERT_EQ(events.back().summary().value_size(), 1);
  EXPECT_EQ(events.back().summary().value(0).tag(), "loss");
}

TEST(EventFile, UnwritableDirectoryOnlyWarns) {
  const CapturedLog captured;
  EventFile file("/proc/nonexistent", 1);
  // Of the directory and of the file in it.
  EXPECT_EQ(captured.Warnings().size(), 2u);
  file.Write(1, {{"loss", 1}});
  EXPECT_EQ(captured.Warnings().size(), 2u);
}

}  // namespace
}  // namespace syntra
