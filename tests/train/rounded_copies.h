// SPDX-License-Identifier: Apache-2.0
// Looks at a replica's bf16 copies of its parameters.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "kernels/bfloat16.h"
#include "train/evaluation_replica.h"

namespace syntra {

// There are copies where programs read such, and they are the parameters as these are now.
inline void ExpectCopiesAreRounded(EvaluationReplica& replica) {
  const TrainedModel model = replica.trained();
  ASSERT_EQ(model.rounded != nullptr, model.backend.KeepsRounded(model.activations));
  if (!model.rounded) return;
  const size_t elements = model.parameters.arena_elements();
  std::vector<float> values(elements);
  std::vector<BFloat16> copies(elements);
  Device& device = model.backend.device();
  device.CopyOut(values.data(), model.values, elements * sizeof(float));
  device.CopyOut(copies.data(), model.rounded, elements * sizeof(BFloat16));
  for (const Parameter& parameter : model.parameters.all()) {
    for (int64_t i = parameter.offset; i < parameter.offset + parameter.shape.size(); ++i) {
      ASSERT_EQ(copies[i].bits, ToBFloat16(values[i]).bits) << parameter.name;
    }
  }
}

}  // namespace syntra
