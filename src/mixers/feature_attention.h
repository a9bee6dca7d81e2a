// SPDX-License-Identifier: Apache-2.0
// The common parts of linear attention and Performer: the weight of key j for query i is
// phi(q_i) . phi(k_j) / sum_j phi(q_i) . phi(k_j) with features phi that are not negative.
#pragma once

#include "mixers/chunked_attention.h"

namespace syntra {

class FeatureAttention : public TokenMixer {
 public:
  MixerTraits traits() const override;
  Value Build(const Scope& scope, const MixerInput& input) const override;
  // Keeps the sums of phi(k) v^T and of phi(k).
  Value BuildStep(const Scope& scope, const MixerStep& step) const override;

 protected:
  struct Sizes {
    const char* feature_field;  // of the mixer's message, for the number of features of a head
    int64_t heads, head_size, features, chunk_length;
  };
  enum class Side { kQuery, kKey };
  struct Rows {
    Value x;  // [B, T, H * K]
    Side side;
    // The segments of the keys, i32 [B, T], where every query reads all keys. Absent in a decoder:
    // there no feature may depend on later keys.
    Value all_read;
  };

  explicit FeatureAttention(const Sizes& sizes) : sizes_(sizes) {}
  int64_t heads() const { return sizes_.heads; }

 private:
  // phi of the rows, [B, T, H * F].
  virtual Value Features(const Scope& scope, const Rows& rows) const = 0;

  ChunkedOperands Operands(const Scope& scope, Value x, Value all_read) const;
  ChunkedAttention Attention(bool causal) const;

  Sizes sizes_;
};

}  // namespace syntra
