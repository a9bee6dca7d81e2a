// SPDX-License-Identifier: Apache-2.0
// Runs a check with several instruction sets.
#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "hwy/highway.h"

namespace syntra {

// Runs `check` with each of AVX-512, AVX2 and no SIMD that the machine has.
inline void OnEveryInstructionSet(const std::function<void()>& check) {
  for (const int64_t target : {int64_t{HWY_AVX3}, int64_t{HWY_AVX2}, int64_t{HWY_STATIC_TARGET}}) {
    if ((hwy::SupportedTargets() & target) == 0) continue;
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().DeInit();
    check();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
}

}  // namespace syntra
