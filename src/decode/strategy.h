// SPDX-License-Identifier: Apache-2.0
// Decoding strategies: how outputs are chosen from what a DecodeSession computes.
//
// src/decode/README.md lists the steps to add one.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "configs/schema/config.pb.h"
#include "decode/session.h"

namespace syntra {

// An output of an input.
struct Hypothesis {
  std::vector<int32_t> ids;  // without the token that ended them
  // Natural logarithm, of the ids and the token that ended them, under the model as it is (without
  // a temperature). 0 if the strategy was not asked for it.
  double log_probability = 0;
  double score = 0;  // by which the hypotheses of an input are ranked

  friend bool operator==(const Hypothesis&, const Hypothesis&) = default;
};
using Hypotheses = std::vector<Hypothesis>;  // of one input, the best first

// The request to a started session.
struct DecodeBatch {
  int64_t inputs = 0;  // the first of the session's; the others only fill its shape
  // Whether the output of `input` that begins with `prefix` ends before `id`. Depends on nothing
  // else.
  std::function<bool(int64_t input, std::span<const int32_t> prefix, int32_t id)> ends;
  // The digest of each input's tokens: the random key of sampling.
  std::vector<uint64_t> digests;
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual int64_t rows_per_input() const { return 1; }
  virtual NextTokens next_tokens() const { return NextTokens::kLogits; }
  // The session has this strategy's rows_per_input and next_tokens, or kBestWithLogProbability in
  // place of kBest. An output that does not end is as long as the session allows.
  virtual std::vector<Hypotheses> Decode(DecodeSession& session,
                                         const DecodeBatch& batch) const = 0;
};

// The name of the strategy that is set; "greedy" if none is.
std::string StrategyName(const DecodingConfig& config);
std::vector<std::string> StrategyNames();

std::unique_ptr<Strategy> MakeStrategy(const DecodingConfig& config);

}  // namespace syntra
