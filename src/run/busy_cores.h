// SPDX-License-Identifier: Apache-2.0
// Finds out that other programs use the cores of this process. Its threads spin while they wait for
// each other, so one thread without a core makes all of them lose their time.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace syntra {

// The seconds for which the calling thread, since it began, was ready to run and no core was free
// for it; nothing if the kernel does not count them.
std::optional<double> SecondsWithoutCore();

class BusyCores {
 public:
  // A warning means that the thread had no core for kShare of the last kSeconds or more.
  static constexpr double kShare = 0.1;
  static constexpr double kSeconds = 20;
  // The least time from one warning to the next.
  static constexpr double kSilentSeconds = 600;

  // `waited` replaces SecondsWithoutCore, and `seconds` the system's monotonic clock, in tests.
  explicit BusyCores(std::function<std::optional<double>()> waited = {},
                     std::function<double()> seconds = {});

  // To be called after each step by the thread that runs it. Returns a warning, or nothing if the
  // cores are free or if the last warning is younger than kSilentSeconds.
  std::optional<std::string> Look();

 private:
  struct Reading {
    double at, waited;  // seconds
  };

  std::function<std::optional<double>()> waited_;
  std::function<double()> seconds_;
  std::optional<Reading> last_;
  double silent_until_ = 0;
};

}  // namespace syntra
