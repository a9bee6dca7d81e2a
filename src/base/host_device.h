// SPDX-License-Identifier: Apache-2.0
// Marks functions that GPU kernels share with the host.
#pragma once

#if defined(__CUDACC__)
#define SYNTRA_HOST_DEVICE __host__ __device__
#else
#define SYNTRA_HOST_DEVICE
#endif
