// SPDX-License-Identifier: Apache-2.0
// Scalars for TensorBoard: an event file of TFRecords, each an Event message.
#pragma once

#include <cstdint>
#include <functional>

#include "base/file.h"
#include "run/append_file.h"
#include "run/metrics_log.h"

namespace syntra {

class EventFile {
 public:
  // Starts a new file in `directory`, created if missing. Tells TensorBoard to drop what earlier
  // files hold from `first_step` on, the first step that this run will train. Errors only warn.
  // `unix_time` is the wall clock; null means the system's.
  EventFile(const Path& directory, int64_t first_step, std::function<double()> unix_time = nullptr);

  // The values that are finite, as metrics.jsonl has them.
  void Write(int64_t step, const NamedValues& values);

  const Path& path() const { return path_; }

 private:
  std::function<double()> unix_time_;
  Path path_;
  AppendFile file_;
};

}  // namespace syntra
