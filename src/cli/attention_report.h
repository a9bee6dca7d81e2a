// SPDX-License-Identifier: Apache-2.0
// How the attentions of a model read: sums over examples of what their weights say, as text and as
// JSON.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "decode/attention_weights.h"

namespace syntra {

// Means over the queries of all examples that read anything, of one head.
struct HeadSummary {
  static constexpr size_t kBins = 50;

  int64_t queries = 0;
  // exp of the entropy of a query's weights: how many keys it would read if it read them equally.
  double keys_read = 0;
  double largest = 0;   // weight
  double distance = 0;  // from query to key, by weight; within a sequence
  // How many weights that are not 0 lie in each of kBins equal parts of [0, 1].
  std::array<int64_t, kBins> histogram{};
};

struct AttentionSummary {
  std::string name;
  bool within_sequence = false;
  std::vector<HeadSummary> heads;
};

// Names of attentions, in order: their scopes, with a number where a layer is applied repeatedly.
std::vector<std::string> AttentionNames(std::span<const AttentionWeights> attentions);

class AttentionReport {
 public:
  // Adds the weights of another batch; all are of the same model.
  void Add(std::span<const AttentionWeights> attentions);

  // One line for each attention: means over its heads, and from the least to the most of a head.
  std::string Text() const;
  Json ToJson() const;

 private:
  std::vector<AttentionSummary> Means() const;

  std::vector<AttentionSummary> sums_;
};

}  // namespace syntra
