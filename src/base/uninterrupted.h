// SPDX-License-Identifier: Apache-2.0
// System calls that a signal may interrupt.
#pragma once

#include <cerrno>

namespace syntra {

// Makes a call again as often as a signal interrupts it, and returns what it gives then: a negative
// number for an error, which errno names.
template <typename Call>
auto Uninterrupted(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

}  // namespace syntra
