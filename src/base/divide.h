// SPDX-License-Identifier: Apache-2.0
// Division that rounds up.
#pragma once

#include <type_traits>

#include "base/host_device.h"

namespace syntra {

// How many parts of `size` hold `count`; both are positive, or `count` is 0.
template <typename T>
SYNTRA_HOST_DEVICE constexpr T DivideUp(T count, std::type_identity_t<T> size) {
  return (count + size - 1) / size;
}

}  // namespace syntra
