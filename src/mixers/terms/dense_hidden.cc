// SPDX-License-Identifier: Apache-2.0
#include "mixers/terms/dense_hidden.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nn/layers.h"
#include "nn/tensors.h"

namespace syntra {

Value DenseHidden::Build(const Scope& scope, const TermInput& input) const {
  const bool shared = share_query && input.query_projection && units == input.head_size;
  Value hidden = input.query_projection;
  if (!shared) {
    const int64_t width = scope.TypeOf(input.x).shape[-1];
    const int64_t out = input.heads * units;
    const Initializer initializer =
        Initializer::Normal(1 / std::sqrt(static_cast<double>(width * units)));
    if (!bias) return LinearRelu(scope, "hidden", input.x, out, initializer);
    hidden = Linear(scope, "hidden", input.x, out, initializer);
  }
  if (bias) hidden = AddBias(scope, "hidden_bias", hidden);
  return Activation(scope, "relu", hidden);
}

void DenseHidden::Validate(const TermRules& rules) const {
  const bool has_query = std::ranges::any_of(rules.attention.term(), &ScoreTerm::has_dot_product);
  if (!has_query || !share_query || units == rules.attention.head_size()) return;
  const std::string& path = rules.in_term.path();
  rules.in_attention.Add(
      {rules.in_term.Path("hidden"), rules.in_term.Path("share_query"),
       rules.in_attention.Path("head_size")},
      fmt::format("{}.hidden {} cannot share the query projection of head_size {}; set hidden: 0 "
                  "or share_query: false",
                  path, units, rules.attention.head_size()));
}

}  // namespace syntra
