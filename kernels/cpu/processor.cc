// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/processor.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace syntra {

Processor DetectProcessor() {
  __builtin_cpu_init();
  // Clang 14 knows no AMX by name.
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  const bool tiles = __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx >> 22 & 1) != 0;
  return {.avx2_fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"),
          .avx512 = __builtin_cpu_supports("avx512f") != 0,
          .avx512vl = __builtin_cpu_supports("avx512vl") != 0,
          .avx512_bf16 = __builtin_cpu_supports("avx512bf16") != 0,
          .amx_bf16 = tiles};
}

bool AmxMultipliesBFloat16() {
  // Linux gives the registers of tiles to a process that asks for them.
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  static const bool permitted = kProcessor.amx_bf16 && kProcessor.avx512_bf16 &&
                                syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return permitted;
}

bool HasBFloat16Products() { return kProcessor.avx512_bf16 || kProcessor.amx_bf16; }

}  // namespace syntra
