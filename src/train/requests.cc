// SPDX-License-Identifier: Apache-2.0
#include "train/requests.h"

#include <algorithm>
#include <limits>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "train/signals.h"

namespace syntra {
namespace {}  // namespace

Requests::Requests(RequestOptions options)
    : options_(std::move(options)),
      end_(options_.seconds > 0 ? MonotonicSeconds() + options_.seconds
                                : std::numeric_limits<double>::infinity()),
      note_(options_.log_directory / "stopping") {
  if (options_.takes_files) RemoveAll(note_);
}

bool Requests::Stop() {
  const StopRequest signal = PollSignals();
  const StopRequest file =
      options_.takes_files ? PollRequestFiles(options_.run_directory) : StopRequest::kNone;
  const StopRequest strongest = std::max(signal, file);
  save_ |= strongest == StopRequest::kSave;
  stop_ |= strongest == StopRequest::kSaveAndStop || MonotonicSeconds() > end_;
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
