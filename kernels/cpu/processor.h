// SPDX-License-Identifier: Apache-2.0
// Features of the processor, for choices that Highway and oneDNN do not make themselves.
#pragma once

namespace syntra {

struct Processor {
  bool avx2_fma = false;
  bool avx512 = false, avx512vl = false;
  bool avx512_bf16 = false;  // rounds to bf16 and multiplies pairs
  bool amx_bf16 = false;     // multiplies tiles of bf16, several times faster than vectors
};
Processor DetectProcessor();

// A constant and not a function, since inner loops read it.
inline const Processor kProcessor = DetectProcessor();

// Whether the processor has AMX for bf16 and the system lets this process use it.
bool AmxMultipliesBFloat16();

// Whether the processor has instructions that multiply bf16. Others take longer than with f32.
bool HasBFloat16Products();

}  // namespace syntra
