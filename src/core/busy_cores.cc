// SPDX-License-Identifier: Apache-2.0
#include "core/busy_cores.h"

#include <fmt/format.h>

#include <algorithm>
#include <semaphore>
#include <system_error>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/host.h"
#include "base/log.h"
#include "base/text.h"
#include "core/thread.h"

namespace syntra {
namespace {

// libgomp counts the processors when it is loaded, before the ranks of a machine share them.
const int kProcessors = ProcessorCount();

// The threads of an idle team with which libgomp has one more than there are processors. It does
// not count the first of them.
int IdleThreads() { return std::max(kProcessors - ThreadCount() + 2, 2); }

// A thread costs little, but a machine may limit their number.
constexpr int kMostIdle = 64;

}  // namespace

// A team of threads that do nothing. libgomp lets threads spin only briefly while it has more of
// them than there are processors (its manual, GOMP_SPINCOUNT). With OMP_WAIT_POLICY=passive they
// sleep anyway.
class IdleTeam {
 public:
  static std::unique_ptr<IdleTeam> MakeIfPossible() {
    const int threads = IdleThreads();
    if (threads > kMostIdle) return nullptr;
    try {
      return std::make_unique<IdleTeam>(threads);
    } catch (const std::system_error&) {
      return nullptr;
    }
  }
  explicit IdleTeam(int threads) : thread_([this, threads] { Run(threads); }) {}
  ~IdleTeam() {
    end_.release();
    thread_.join();
  }

 private:
  void Run(int threads) {
    SetThreadCount(threads);
    // Without any work, the compiler would leave out the team.
#pragma omp parallel
    threads_.fetch_add(1, std::memory_order_relaxed);
    end_.acquire();
  }

  std::atomic<int> threads_ = 0;
  std::binary_semaphore end_{0};
  std::thread thread_;
};

std::vector<double> BusyCores::SecondsWithoutCore() {
  std::vector<double> seconds(ThreadCount());
  std::atomic<bool> known = true;
  ParallelFor(std::ssize(seconds), 1, [&](int64_t begin, int64_t end) {
    // Nanoseconds with a core, nanoseconds without one, and how often it got one.
    const std::vector<std::string> fields = Split(KernelFile("/proc/thread-self/schedstat"), ' ');
    int64_t nanoseconds = 0;
    if (fields.size() < 2 || !ParseInt64(fields[1], &nanoseconds)) known = false;
    for (int64_t i = begin; i < end; ++i) seconds[i] = 1e-9 * static_cast<double>(nanoseconds);
  });
  if (!known) seconds.clear();
  return seconds;
}

BusyCores::BusyCores(std::function<std::vector<double>()> waits, std::function<double()> seconds)
    : waits_(waits ? std::move(waits) : SecondsWithoutCore),
      seconds_(seconds ? std::move(seconds) : MonotonicSeconds) {}

BusyCores::~BusyCores() = default;

std::optional<BusyCores::Waited> BusyCores::LongestSinceLast() {
  const double now = seconds_();
  if (last_look_ && now - *last_look_ < kSeconds) return std::nullopt;
  const std::vector<double> before = std::exchange(last_waits_, waits_());
  const double seconds = now - std::exchange(last_look_, now).value_or(now);
  if (before.empty() || before.size() != last_waits_.size()) return std::nullopt;
  double longest = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    longest = std::max(longest, last_waits_[i] - before[i]);
  }
  return Waited{.share = longest / seconds, .seconds = seconds};
}

std::optional<std::string> BusyCores::Look() {
  const std::optional<Waited> waited = LongestSinceLast();
  if (!waited) return std::nullopt;
  if (waited->share <= kFreeShare) {
    busy_ = false;
    idle_.reset();
  }
  if (busy_ || waited->share < kBusyShare) return std::nullopt;
  busy_ = true;
  idle_ = IdleTeam::MakeIfPossible();
  const double now = seconds_();
  if (now < silent_until_) return std::nullopt;
  silent_until_ = now + kSilentSeconds;
  return fmt::format(
      "other work uses the cores of this process: one of its threads had none for {:.0f} % of the "
      "last {:.0f} s. {}",
      100 * waited->share, waited->seconds,
      idle_
          ? "Its threads now sleep while they wait for each other, until the cores are free again"
          : "With OMP_WAIT_POLICY=passive its threads would sleep while they wait for each other");
}

void LookWhetherCoresAreBusy() {
  static BusyCores cores;
  if (const std::optional<std::string> warning = cores.Look()) Log().warn("{}", *warning);
}

}  // namespace syntra
