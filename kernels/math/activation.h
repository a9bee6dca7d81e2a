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

#include "kernels/math/activation.inc"
#undef SYNTRA_FORMULA

}  // namespace syntra::scalar
