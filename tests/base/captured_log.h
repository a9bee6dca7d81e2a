// SPDX-License-Identifier: Apache-2.0
// What the process logs while an object of this class lives, which nobody else sees.
#pragma once

#include <spdlog/sinks/ringbuffer_sink.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"

namespace syntra {

class CapturedLog {
 public:
  CapturedLog() { std::swap(Log().sinks(), sinks_); }
  ~CapturedLog() { std::swap(Log().sinks(), sinks_); }
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;

  std::vector<std::string> Warnings() const {
    std::vector<std::string> warnings;
    for (const auto& message : sink_->last_raw()) {
      if (message.level != spdlog::level::warn) continue;
      warnings.emplace_back(message.payload.data(), message.payload.size());
    }
    return warnings;
  }

 private:
  std::shared_ptr<spdlog::sinks::ringbuffer_sink_mt> sink_ =
      std::make_shared<spdlog::sinks::ringbuffer_sink_mt>(100);
  std::vector<spdlog::sink_ptr> sinks_{sink_};
};

}  // namespace syntra
