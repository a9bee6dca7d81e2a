// SPDX-License-Identifier: Apache-2.0
// Notices when other work uses the cores of the thread pool, and lets its threads sleep meanwhile
// instead of spin while they wait for each other.
//
// Threads that have cores of their own wait best by spinning: it takes them microseconds to wake
// up. But if one has no core, the others spin in vain, often on the core that it needs. Steps of a
// small model then took up to 40 times as long.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace syntra {

class IdleTeam;

class BusyCores {
 public:
  // The cores are busy if a thread of the pool had none for kBusyShare of the last kSeconds or
  // more, and free again if each had one for all but kFreeShare of them.
  static constexpr double kSeconds = 10;
  static constexpr double kBusyShare = 0.1, kFreeShare = 0.02;
  // The least time from one warning to the next.
  static constexpr double kSilentSeconds = 600;

  // For each thread of the pool, the seconds for which it was ready to run and had no core, since
  // it began. Empty if the kernel does not count them.
  static std::vector<double> SecondsWithoutCore();

  // `waits` replaces SecondsWithoutCore, and `seconds` the system's monotonic clock, in tests.
  explicit BusyCores(std::function<std::vector<double>()> waits = {},
                     std::function<double()> seconds = {});
  ~BusyCores();

  // Returns a warning when the cores have become busy, unless the last one is younger than
  // kSilentSeconds.
  std::optional<std::string> Look();
  bool busy() const { return busy_; }

 private:
  struct Waited {
    double share, seconds;  // the share of these seconds for which a thread had no core
  };
  // Of the thread that waited longest since the last call; nothing if that was less than kSeconds
  // ago or if it is not known.
  std::optional<Waited> LongestSinceLast();

  std::function<std::vector<double>()> waits_;
  std::function<double()> seconds_;
  std::optional<double> last_look_;
  std::vector<double> last_waits_;
  double silent_until_ = 0;
  bool busy_ = false;
  std::unique_ptr<IdleTeam> idle_;  // exists while threads are to sleep
};

// To be called after each step or batch of a long computation, by the thread that runs its teams.
// Logs what BusyCores finds out about the pool.
void LookWhetherCoresAreBusy();

}  // namespace syntra
