// SPDX-License-Identifier: Apache-2.0
// A timeline of what a process did, as chrome://tracing and Perfetto (ui.perfetto.dev) show it.
// Format: Trace Event Format,
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU, with complete
// events ("ph": "X"), instants ("i") and names of processes and threads ("M").
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"

namespace syntra {

// The threads, whose timelines stand one below the other. The spans of one thread nest.
enum class TraceLane { kTraining, kData, kCheckpoint };

class Trace {
 public:
  // Time 0 is `origin`, in seconds since 1970: the same for all ranks, so that their files fit
  // together.
  explicit Trace(double origin);

  // May be called from any thread. `facts` are shown where the span is selected.
  void Add(TraceLane lane, std::string name, Clock::time_point begin, Clock::time_point end,
           const Json& facts);
  // Adds an event that takes no time.
  void AddInstant(TraceLane lane, std::string name, Clock::time_point at, const Json& facts);
  // Begins a span now; the result is the number with which it is ended.
  size_t Begin(TraceLane lane, std::string name, const Json& facts);
  void End(size_t span);

  // The file's content: `process` names rank `rank`, `about` is for people and programs. A span
  // that has not ended ends now and has the fact `unfinished`.
  std::string Text(int rank, const std::string& process, const Json& about) const;

 private:
  struct Span {
    TraceLane lane;
    std::string name;
    int64_t begin;               // nanoseconds since the origin
    std::optional<int64_t> end;  // an instant ends where it begins
    std::string facts;           // JSON
    bool is_instant = false;
  };

  int64_t At(Clock::time_point time) const;
  std::string SpanText(const Span& span, int rank, int64_t now) const;

  Clock::time_point origin_;
  mutable std::mutex mutex_;
  std::vector<Span> spans_;
};

// Records the block around it as a span that belongs to `step`. Where `trace` is null it does
// nothing, and does not even read the clock. `name` is a literal.
class TraceSpan {
 public:
  TraceSpan(std::shared_ptr<Trace> trace, TraceLane lane, const char* name, int64_t step)
      : trace_(std::move(trace)) {
    if (trace_) span_ = trace_->Begin(lane, name, {{"step", step}});
  }
  ~TraceSpan() {
    if (trace_) trace_->End(span_);
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  std::shared_ptr<Trace> trace_;  // a thread may outlive the recording
  size_t span_ = 0;
};

}  // namespace syntra
