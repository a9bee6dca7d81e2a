// SPDX-License-Identifier: Apache-2.0
#include "run/trace.h"

#include <fmt/format.h>

#include <array>

namespace syntra {
namespace {

// By TraceLane.
constexpr std::array kLanes{"training", "data", "checkpoint"};

// The format counts in microseconds; with three digits no nanosecond is lost, so spans that nest in
// time nest in the file.
std::string Microseconds(int64_t nanoseconds) {
  const char* sign = nanoseconds < 0 ? "-" : "";
  const int64_t size = std::abs(nanoseconds);
  return fmt::format("{}{}.{:03}", sign, size / 1000, size % 1000);
}

// The name of a process or a thread (`lane`), and its place among the others.
std::string Naming(const char* of, int rank, size_t lane, const std::string& name, size_t place) {
  return fmt::format(
      "{{\"name\":\"{0}_name\",\"ph\":\"M\",\"pid\":{1},\"tid\":{2},\"args\":{{\"name\":{3}}}}},\n"
      "{{\"name\":\"{0}_sort_index\",\"ph\":\"M\",\"pid\":{1},\"tid\":{2},"
      "\"args\":{{\"sort_index\":{4}}}}}",
      of, rank, lane, JsonText(name), place);
}

}  // namespace

Trace::Trace(double origin)
    : origin_(Clock::now() - std::chrono::duration_cast<Clock::duration>(
                                 std::chrono::duration<double>(UnixSeconds() - origin))) {}

int64_t Trace::At(Clock::time_point time) const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time - origin_).count();
}

void Trace::Add(TraceLane lane, std::string name, Clock::time_point begin, Clock::time_point end,
                const Json& facts) {
  const std::lock_guard lock(mutex_);
  spans_.push_back({lane, std::move(name), At(begin), At(end), JsonText(facts)});
}

void Trace::AddInstant(TraceLane lane, std::string name, Clock::time_point at, const Json& facts) {
  const std::lock_guard lock(mutex_);
  spans_.push_back({lane, std::move(name), At(at), At(at), JsonText(facts), true});
}

size_t Trace::Begin(TraceLane lane, std::string name, const Json& facts) {
  const std::lock_guard lock(mutex_);
  spans_.push_back({lane, std::move(name), At(Clock::now()), std::nullopt, JsonText(facts)});
  return spans_.size() - 1;
}

void Trace::End(size_t span) {
  const std::lock_guard lock(mutex_);
  spans_[span].end = At(Clock::now());
}

std::string Trace::SpanText(const Span& span, int rank, int64_t now) const {
  const std::string duration = span.is_instant
                                   ? "\"s\":\"t\""
                                   : "\"dur\":" + Microseconds(span.end.value_or(now) - span.begin);
  std::string facts = span.facts;
  if (!span.end) facts.replace(facts.size() - 1, 1, ",\"unfinished\":true}");
  return fmt::format("{{\"name\":{},\"ph\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":{},{},\"args\":{}}}",
                     JsonText(span.name), span.is_instant ? 'i' : 'X', rank,
                     static_cast<int>(span.lane), Microseconds(span.begin), duration, facts);
}

std::string Trace::Text(int rank, const std::string& process, const Json& about) const {
  const std::lock_guard lock(mutex_);
  const int64_t now = At(Clock::now());
  std::string text = "{\"displayTimeUnit\":\"ms\",\"otherData\":" + JsonText(about) +
                     ",\"traceEvents\":[\n" + Naming("process", rank, 0, process, rank);
  for (size_t lane = 0; lane < kLanes.size(); ++lane) {
    text += ",\n" + Naming("thread", rank, lane, kLanes[lane], lane);
  }
  for (const Span& span : spans_) text += ",\n" + SpanText(span, rank, now);
  return text + "\n]}\n";
}

}  // namespace syntra
