// SPDX-License-Identifier: Apache-2.0
#include "run/rollbacks.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace syntra {
namespace {

constexpr int64_t kMostLeftOut = int64_t{1} << 62;

}  // namespace

void Rollbacks::Add(int64_t from, int64_t to) {
  SYNTRA_CHECK(0 <= to && to < from, "a rollback from step {} to step {}", from, to);
  rollbacks_.push_back({from, to});
}

// After a rollback, step `to` takes the batch that step `from` had before it.
int64_t Rollbacks::BatchAt(int64_t step) const {
  for (auto it = rollbacks_.rbegin(); it != rollbacks_.rend(); ++it) {
    if (step >= it->to) step += it->from - it->to;
  }
  return step;
}

std::string Rollbacks::ToText() const {
  std::vector<std::string> parts;
  for (const auto& [from, to] : rollbacks_) parts.push_back(fmt::format("{}-{}", from, to));
  return Join(parts, " ");
}

void Rollbacks::Restore(std::string_view text) {
  rollbacks_.clear();
  if (text.empty()) return;
  int64_t left_out = 0;  // batches: BatchAt must be able to count them
  for (const std::string& part : Split(text, ' ')) {
    const std::vector<std::string> steps = Split(part, '-');
    Rollback rollback = {};
    if (steps.size() != 2 || !ParseInt64(steps[0], &rollback.from) ||
        !ParseInt64(steps[1], &rollback.to) || rollback.to < 0 || rollback.to >= rollback.from ||
        __builtin_add_overflow(left_out, rollback.from - rollback.to, &left_out) ||
        left_out > kMostLeftOut) {
      Fail(ExitCode::kCheckpoint, "\"{}\" is not a list of rollbacks", Printable(text, 40));
    }
    rollbacks_.push_back(rollback);
  }
}

}  // namespace syntra
