// SPDX-License-Identifier: Apache-2.0
// A clock for logs whose lines are compared.
#pragma once

#include <chrono>

#include "base/clock.h"

namespace syntra {

// A clock that stands at 2023-11-14 22:13:20.045.
inline WallClock::time_point FixedTime() {
  return WallClock::time_point(std::chrono::milliseconds(1700000000045));
}

}  // namespace syntra
