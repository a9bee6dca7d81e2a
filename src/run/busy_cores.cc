// SPDX-License-Identifier: Apache-2.0
#include "run/busy_cores.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/host.h"
#include "base/text.h"

namespace syntra {

std::optional<double> SecondsWithoutCore() {
  // Nanoseconds with a core, nanoseconds without one, and how often it got one.
  const std::vector<std::string> fields = Split(KernelFile("/proc/thread-self/schedstat"), ' ');
  int64_t nanoseconds = 0;
  if (fields.size() < 2 || !ParseInt64(fields[1], &nanoseconds)) return std::nullopt;
  return 1e-9 * static_cast<double>(nanoseconds);
}

BusyCores::BusyCores(std::function<std::optional<double>()> waited, std::function<double()> seconds)
    : waited_(waited ? std::move(waited) : SecondsWithoutCore),
      seconds_(seconds ? std::move(seconds) : MonotonicSeconds) {}

std::optional<std::string> BusyCores::Look() {
  const double now = seconds_();
  if (last_ && now - last_->at < kSeconds) return std::nullopt;
  const std::optional<double> waited = waited_();
  if (!waited) return std::nullopt;
  const std::optional<Reading> before = std::exchange(last_, Reading{now, *waited});
  if (!before || now < silent_until_) return std::nullopt;
  const double seconds = now - before->at, share = (*waited - before->waited) / seconds;
  if (share < kShare) return std::nullopt;
  silent_until_ = now + kSilentSeconds;
  return fmt::format(
      "for {:.0f} % of the last {:.0f} s no core was free for this process: other programs use its "
      "cores, and its threads spin while they wait for each other; give it cores of its own, lower "
      "train.threads, or set OMP_WAIT_POLICY=passive, which lets threads sleep instead",
      100 * share, seconds);
}

}  // namespace syntra
