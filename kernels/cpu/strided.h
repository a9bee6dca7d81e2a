// SPDX-License-Identifier: Apache-2.0
// Elementwise kernels over strided operands: broadcasts and copies.
#pragma once

#include <span>

#include "kernels/strided_call.h"

namespace syntra {

// Runs the call on all threads. A null `a` stands for zeros. b is not read if the call has none.
void RunStrided(const StridedCall& call, void* y, const void* a, const void* b);

// Runs copies that all go to `y`; copy i reads from from[i].
void RunCopies(std::span<const StridedCall> copies, void* y, std::span<void* const> from);

// Makes this call the kernel of an op: y is output 0, a and b are inputs 0 and 1.
BoundKernel BindStrided(const StridedCall& call);

}  // namespace syntra
