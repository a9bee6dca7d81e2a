// SPDX-License-Identifier: Apache-2.0
// Which instruction sets the SIMD kernels are compiled for: the baseline, AVX2 and AVX-512. The
// steps between them would cost compile time and serve no machine that anybody trains on. Include
// first.
#pragma once

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)

// Whether the code that is compiled now is for AVX-512. Of Highway's targets the better is the
// lower.
#define SYNTRA_AVX512 (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3)
