// SPDX-License-Identifier: Apache-2.0
// The heads of a mixer, and the projections to them and back: parameters `query`, `key`, `value`
// and `output` of a scope.
#pragma once

#include <string>

#include "nn/scope.h"

namespace syntra {

// H heads of K columns.
struct Heads {
  int64_t count, size;
  double dropout = 0;  // of the attention probabilities, as HeadDropout does it

  int64_t columns() const { return count * size; }
};

// The heads that a mixer's message describes.
template <typename Config>
Heads HeadsOf(const Config& config) {
  return {config.heads(), config.head_size(), config.dropout()};
}

// x [B, T, D] times the parameter `name`, [B, T, columns]. At first the parameter is normal with
// deviation factor * D^-1/2.
Value Project(const Scope& scope, const std::string& name, Value x, int64_t columns,
              double factor = 1);

// Projections of x [B, T, D] for a dot product of heads, each [B, T, H * K]. The first weights of
// queries have deviation (D K)^-1/2, which includes the factor K^-1/2 of the scores (T5).
Value ProjectQuery(const Scope& scope, const Heads& heads, Value x);
Value ProjectKey(const Scope& scope, const Heads& heads, Value x);
Value ProjectValue(const Scope& scope, const Heads& heads, Value x);
// mixed [B, T, C] as [B, T, width]. The first weights have deviation C^-1/2.
Value ProjectOutput(const Scope& scope, Value mixed, int64_t width);

}  // namespace syntra
