// SPDX-License-Identifier: Apache-2.0
// The constants of Adafactor (Shazeer and Stern 2018, section 8: epsilon 1 and epsilon 2).
#pragma once

namespace syntra::adafactor {

inline constexpr double kSquareFloor = 1e-30;  // is added to each squared gradient
// The least root mean square of a parameter that counts.
inline constexpr double kScaleFloor = 1e-3;

}  // namespace syntra::adafactor
