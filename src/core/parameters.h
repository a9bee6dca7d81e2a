// SPDX-License-Identifier: Apache-2.0
// The list of a model's parameters: names, shapes, initial distributions, and where each lies in
// the flat arenas of values, gradients and optimizer state. Holds no tensor memory, so sizes are
// known before anything is allocated.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/buffer.h"
#include "core/shape.h"

namespace syntra {

// How a parameter's first values are drawn. `scale` is the standard deviation for the normal kinds
// and half the width of the interval for kUniform; kOrthogonal has none.
struct Initializer {
  enum class Kind { kConstant, kNormal, kTruncatedNormal, kUniform, kOrthogonal };
  Kind kind = Kind::kConstant;
  double scale = 0.0;  // kConstant: the value itself

  static Initializer Constant(double value) { return {Kind::kConstant, value}; }
  static Initializer Normal(double deviation) { return {Kind::kNormal, deviation}; }
  // A normal distribution whose draws beyond two deviations are redrawn; not rescaled, as in Mesh
  // TensorFlow.
  static Initializer TruncatedNormal(double deviation) {
    return {Kind::kTruncatedNormal, deviation};
  }
  static Initializer Uniform(double limit) { return {Kind::kUniform, limit}; }
  // For a matrix from `in` units to `out` units (Glorot and Bengio 2010, equation 16).
  static Initializer GlorotUniform(int64_t in, int64_t out) {
    return Uniform(std::sqrt(6.0 / static_cast<double>(in + out)));
  }
  // The columns of a matrix [n, m] have the distribution of n independent normal numbers each, but
  // in groups of n they are orthogonal to each other (Choromanski et al. 2021, section 2.4).
  static Initializer Orthogonal() { return {Kind::kOrthogonal}; }
};

struct ParameterSpec {
  std::string name;  // hierarchical: "encoder/layer_03/mixer/value"
  Shape shape;
  Initializer initializer;
  bool trainable = true;
  // The number of training steps after which a parameter that is not trained is redrawn; 0: never.
  int64_t redraw_every = 0;
};

struct Parameter : ParameterSpec {
  // In elements, from the start of each flat arena; a multiple of ParameterStore::kBlock.
  int64_t offset = 0;
};

// Elements [begin, end) of a tensor or an arena.
struct ElementRange {
  int64_t begin = 0, end = 0;

  int64_t size() const { return end - begin; }
  ElementRange And(const ElementRange& other) const {
    const int64_t first = std::max(begin, other.begin);
    return {first, std::max(first, std::min(end, other.end))};
  }
  friend bool operator==(const ElementRange&, const ElementRange&) = default;
};

// How many elements lie in these ranges.
inline int64_t CountOf(std::span<const ElementRange> ranges) {
  int64_t count = 0;
  for (const ElementRange& range : ranges) count += range.size();
  return count;
}

class ParameterStore {
 public:
  // Names must be unique.
  const Parameter& Declare(ParameterSpec spec);

  const Parameter& Get(const std::string& name) const;
  const Parameter* Find(const std::string& name) const;
  // In the order of declaration; references stay valid.
  const std::deque<Parameter>& all() const { return parameters_; }

  int64_t element_count() const;  // sum of sizes, padding excluded
  int64_t trainable_element_count() const;
  // Padding included.
  int64_t arena_elements() const { return RoundUp(end_, ranks_); }

  // Parameters begin at multiples of kBlock, and so do the ranks' shares of the arena. So a sum by
  // blocks is the same wherever the shares end.
  static constexpr int64_t kBlock = 512;
  // How many blocks of the arena hold parameters.
  int64_t blocks() const { return end_ / kBlock; }

  // Rounds `elements` up so that each of `ranks` ranks gets the same number of whole blocks.
  static int64_t RoundUp(int64_t elements, int ranks) {
    return static_cast<int64_t>(AlignUp(elements, ranks * kBlock));
  }
  // Pads the arena so that `ranks` ranks can share it equally.
  void ShareEqually(int ranks) { ranks_ = ranks; }
  // The arena cut into buckets from its end on, as the backward half fills it; 0: a single bucket.
  // A bucket has about `bucket_elements` elements at most. Buckets shrink towards the first
  // parameter, which lies whole in the last bucket.
  std::vector<ElementRange> Buckets(int64_t bucket_elements) const;

  // The arena of gradients ends with sums over the examples of a step. Like gradients, they are
  // added over micro-batches and ranks. Each takes kSumElements elements, after arena_elements().
  static constexpr int64_t kSumElements = 16, kMostSums = 3;
  int64_t gradient_elements() const { return arena_elements() + kMostSums * kSumElements; }

 private:
  std::deque<Parameter> parameters_;
  std::unordered_map<std::string, int> index_;
  int64_t end_ = 0;  // of the last parameter, a multiple of kBlock
  int ranks_ = 1;
};

// Writes the first values of `parameter` to `values`: a function of the seed, the parameter's name
// and the element index alone.
void Initialize(const ParameterSpec& parameter, uint64_t seed, std::span<float> values);

}  // namespace syntra
