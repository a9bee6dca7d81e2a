// SPDX-License-Identifier: Apache-2.0
// A clock for logs whose lines are compared.
#pragma once

#include <chrono>

namespace syntra {

// A clock that stands at 2023-11-14 22:13:20.045.
inline std::chrono::system_clock::time_point FixedTime() {
  return std::chrono::system_clock::time_point(std::chrono::milliseconds(1700000000045));
}

}  // namespace syntra
