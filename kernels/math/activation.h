// SPDX-License-Identifier: Apache-2.0
// The functions of the op activation for doubles and floats, on the host and on GPUs.
#pragma once

#include <cmath>
#include <string_view>

#include "base/host_device.h"

namespace syntra::scalar {

#define SYNTRA_FORMULA SYNTRA_HOST_DEVICE inline
#define SYNTRA_WORD(Name, function)                               \
  SYNTRA_FORMULA float Name(float x) { return std::function(x); } \
  SYNTRA_FORMULA double Name(double x) { return std::function(x); }
SYNTRA_WORD(Exp, exp)
SYNTRA_WORD(Log, log)
SYNTRA_WORD(Tanh, tanh)
SYNTRA_WORD(Erf, erf)
SYNTRA_WORD(Sin, sin)
SYNTRA_WORD(Cos, cos)
SYNTRA_WORD(Sqrt, sqrt)
#undef SYNTRA_WORD
template <typename N>
SYNTRA_FORMULA N Where(bool condition, N yes, N no) {
  return condition ? yes : no;
}
template <typename N>
SYNTRA_FORMULA N Max(N x, N y) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(N) == sizeof(float)) {  // one instruction; fmaxf ignores NaN
    N larger;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(x), "f"(y));
    return larger;
  }
#endif
  return y > x ? y : x;
}

#include "kernels/math/activation.inc"
#undef SYNTRA_FORMULA

}  // namespace syntra::scalar
