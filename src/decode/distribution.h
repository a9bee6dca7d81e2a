// SPDX-License-Identifier: Apache-2.0
// The distribution of a next token, from its logits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "configs/schema/config.pb.h"

namespace syntra {

// Thrown if a logit or log-probability is not finite: the parameters are damaged or too large. It
// is an Error(kCheckpoint); training catches it and reports a divergence instead.
class NotFiniteOutput : public Error {
 public:
  explicit NotFiniteOutput(double log_probability);
};

// Returns a log-probability. Throws NotFiniteOutput if it is not finite.
double Finite(double log_probability);

// log sum_v exp(logits[v]); like Finite.
double LogSumExp(std::span<const float> logits);

// The `count` tokens with the largest logits, or all, the largest first; of equals the lower id.
std::vector<int32_t> TopTokens(std::span<const float> logits, int64_t count);

// Draws from the top_k most probable tokens; of these from the fewest whose probabilities reach
// top_p (Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration"), and from what is as
// probable as the last of them. Probabilities are those of logits / temperature, renormalised after
// each of the two. They divide [0, 1] among the tokens, to a relative error of 1e-6, in the order
// of ids, or, if there is a top_k, with the most probable first. Returns the token in whose share
// `uniform` lies. Throws NotFiniteOutput if a logit is not finite and would matter.
int32_t DrawToken(std::span<const float> logits, const SampleDecoding& sampling, double uniform);

}  // namespace syntra
