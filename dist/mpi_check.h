// SPDX-License-Identifier: Apache-2.0
// The check around every MPI call.
#pragma once

#include <mpi.h>

#include "base/error.h"

namespace syntra::internal {

[[noreturn]] void MpiFailed(const char* call, int error);

}  // namespace syntra::internal

// Throws Error(kPeerLost) naming the call unless it returns MPI_SUCCESS.
#define SYNTRA_MPI(call)                                                     \
  do {                                                                       \
    if (const int mpi_error = (call); mpi_error != MPI_SUCCESS) [[unlikely]] \
      ::syntra::internal::MpiFailed(#call, mpi_error);                       \
  } while (false)
