// SPDX-License-Identifier: Apache-2.0
#include "run/requests.h"

#include <algorithm>
#include <ctime>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "run/signals.h"

namespace syntra {
namespace {

constexpr double kMarginSeconds = 30;

}  // namespace

double SecondsLeftInJob(const char* end_time) {
  int64_t end = 0;
  if (!end_time || !ParseInt64(end_time, &end) || end <= 0) {
    return std::numeric_limits<double>::infinity();
  }
  return std::max(0.0, static_cast<double>(end) - static_cast<double>(std::time(nullptr)));
}

double SecondsKeptForSaving(double job_seconds, double longest_gap) {
  return std::min(kMarginSeconds + 2 * longest_gap, std::max(0.0, job_seconds) / 2);
}

Requests::Requests(RequestOptions options)
    : options_(std::move(options)), note_(options_.log_directory / "stopping") {
  if (options_.takes_files) RemoveAll(note_);
}

bool Requests::JobEnds(double now) {
  const double left = options_.job_seconds - (now - start_);
  if (left > SecondsKeptForSaving(options_.job_seconds, longest_gap_)) return false;
  if (!stop_) {
    Log().info("the job ends in {}, and a step and a save took up to {}: saving and stopping",
               HumanDuration(std::max(0.0, left)), HumanDuration(longest_gap_));
  }
  return true;
}

bool Requests::Stop() {
  const double now = MonotonicSeconds();
  longest_gap_ = std::max(longest_gap_, now - latest_look_);
  latest_look_ = now;
  const StopRequest signal = PollSignals();
  const StopRequest file =
      options_.takes_files ? PollRequestFiles(options_.run_directory) : StopRequest::kNone;
  const StopRequest strongest = std::max(signal, file);
  save_ |= strongest == StopRequest::kSave;
  const bool is_over = (options_.seconds > 0 && now - start_ > options_.seconds) || JobEnds(now);
  stopped_by_time_ |= is_over && !stop_;
  stop_ |= strongest == StopRequest::kSaveAndStop || is_over;
  return stop_;
}

bool Requests::StopOfAnyRank() {
  std::error_code code;
  if (!Stop()) return std::filesystem::exists(note_, code);
  try {
    ReplaceFileDurably(note_, "");
  } catch (const Error& error) {
    // The others then stop when they are done with what they do.
    Log().warn("{}", error.what());
  }
  return true;
}

}  // namespace syntra
