// SPDX-License-Identifier: Apache-2.0
// The common parts of the rows of `attention` and `attention_grad`.
#pragma once

#include <span>
#include <vector>

#include "kernels/attention_call.h"
#include "kernels/op.h"

namespace syntra::attention {

void Reference(const OpCall& call, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs);
void ReferenceWeights(const OpCall& call, std::span<const ReferenceTensor> inputs,
                      std::span<const ReferenceTensor> outputs);
void ReferenceGradient(const OpCall& call, std::span<const ReferenceTensor> inputs,
                       std::span<const ReferenceTensor> outputs);

// The test cases of attention, in f32 and bf16.
std::vector<OpCase> Cases();

// Fills the bias of a case as its bias_reach demands: lines with equal entries from it on.
FillNumbers FillBias(int64_t queries, int64_t keys, int64_t bias_reach);

}  // namespace syntra::attention
