// SPDX-License-Identifier: Apache-2.0
// Which positions the layers of a trained model read, and how much of each: the softmax of the
// scores of every attention, whatever their terms.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "data/batch.h"
#include "decode/session.h"

namespace syntra {

struct AttentionWeights {
  std::string scope;             // of the layer's parameters: "encoder/layer_00/mixer"
  bool within_sequence = false;  // queries and keys are the positions of the same sequence
  int64_t rows = 0, heads = 0, queries = 0, keys = 0;
  // [rows, heads, queries, keys]; 0 where a query may not read. The sum over keys is 1, or 0 for a
  // query that reads nothing, such as padding.
  std::vector<float> values;

  // The weights of one query, [keys].
  std::span<const float> Of(int64_t row, int64_t head, int64_t query) const {
    return std::span(values).subspan(((row * heads + head) * queries + query) * keys, keys);
  }
};

// The weights of every attention of the model, in the order in which a forward pass computes them;
// a layer that is applied several times has several. Throws Error(kConfig) if the model has none.
std::vector<AttentionWeights> AttentionWeightsOf(const TrainedModel& model, const Batch& batch);

}  // namespace syntra
