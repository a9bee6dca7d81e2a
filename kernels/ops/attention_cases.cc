// SPDX-License-Identifier: Apache-2.0
// The test cases of attention: every score term alone, with the others, and under every mask.
#include <algorithm>

#include "base/divide.h"
#include "kernels/ops/attention.h"

namespace syntra::attention {
namespace {

struct CaseDimensions {
  int64_t batch = 2, queries = 6, keys = 6, heads = 2, head_size = 4;
};

// Collects the operands of a case. Absent ones stay kNone.
class CaseBuilder {
 public:
  CaseBuilder(DType dtype, CaseDimensions dimensions)
      : z_(dimensions), dtype_(dtype), inputs_(kInputCount, {DType::kNone, {}}) {
    inputs_[kValue] = Activation(z_.keys, z_.head_size);
  }
  CaseBuilder& Causal() {
    pattern_.causal = true;
    return *this;
  }
  CaseBuilder& Dot() {
    inputs_[kQuery] = Activation(z_.queries, z_.head_size);
    inputs_[kKey] = Activation(z_.keys, z_.head_size);
    return *this;
  }
  CaseBuilder& Dense(int64_t features, int64_t extent, bool per_head) {
    inputs_[kU] = Activation(z_.queries, features);
    inputs_[kPositions] = {DType::kF32,
                           per_head ? Shape{z_.heads, features, extent} : Shape{features, extent}};
    return *this;
  }
  CaseBuilder& Factorized(int64_t a_size, int64_t b_size) {
    inputs_[kA] = Activation(z_.queries, a_size);
    inputs_[kB] = Activation(z_.queries, b_size);
    return *this;
  }
  CaseBuilder& Table(int64_t heads, int64_t queries, int64_t keys) {
    inputs_[kTable] = {DType::kF32, {heads, queries, keys}};
    return *this;
  }
  CaseBuilder& Bias(int64_t reach = 0) {
    inputs_[kBias] = {DType::kF32, {z_.heads, z_.queries + z_.keys - 1}};
    bias_reach_ = reach;
    return *this;
  }
  CaseBuilder& Segments() {
    inputs_[kQuerySegments] = {DType::kI32, {z_.batch, z_.queries}};
    inputs_[kKeySegments] = {DType::kI32, {z_.batch, z_.keys}};
    return *this;
  }
  CaseBuilder& Positions() {
    inputs_[kQueryPositions] = {DType::kI32, {z_.batch, z_.queries}};
    inputs_[kKeyPositions] = {DType::kI32, {z_.batch, z_.keys}};
    return *this;
  }
  // Prefixes of causal cases.
  CaseBuilder& Prefixes() {
    inputs_[kPrefixEnds] = {DType::kI32, {z_.batch, z_.queries}};
    return *this;
  }
  CaseBuilder& Start() {
    inputs_[kQueryStart] = {DType::kI32, {1}};
    return *this;
  }
  CaseBuilder& Window(int64_t window, int64_t dilation = 1, int64_t globals = 0) {
    pattern_ = {pattern_.causal, window, dilation, globals};
    return *this;
  }
  CaseBuilder& Blocks(int64_t heads, int64_t block, int64_t read) {
    block_ = block;
    inputs_[kKeyBlocks] = {DType::kI32, {heads, DivideUp(z_.queries, block), read}};
    return *this;
  }
  OpCase Build(std::string name) const;

 private:
  TensorType Activation(int64_t rows, int64_t width) const {
    return {dtype_, {z_.batch, rows, z_.heads * width}};
  }

  CaseDimensions z_;
  DType dtype_;
  Pattern pattern_;
  int64_t block_ = 0, bias_reach_ = 0;
  std::vector<TensorType> inputs_;
};

// The segments of the examples: a single segment; packed rows that end in padding, where the
// queries also have a segment that no key has; only padding; one segment followed by padding.
int32_t SegmentAt(int64_t example, int64_t row, int64_t rows, bool query) {
  if (example == 0) return 1;
  if (example == 3) return row < rows * 2 / 3 ? 4 : 0;
  if (example == 2 || row == rows - 1) return 0;
  if (query && row == rows - 2) return 9;
  return row < rows / 2 ? 1 : 2;
}

// The ends of prefixes: all rows but the last read all; of packed rows the first read each other;
// no prefix; a prefix of two thirds of the rows.
int32_t PrefixEndAt(int64_t example, int64_t row, int64_t rows) {
  const int64_t ends[] = {rows - 1, rows / 2, 0, rows * 2 / 3};
  return static_cast<int32_t>(row < ends[example] ? ends[example] : 0);
}

OpCase CaseBuilder::Build(std::string name) const {
  const int64_t read = block_ > 0 ? inputs_[kKeyBlocks].shape[2] : 0;
  const auto fill = [z = z_, read](int input, std::span<int32_t> values) {
    const bool query = input == kQuerySegments || input == kQueryPositions || input == kPrefixEnds;
    const int64_t rows = query ? z.queries : z.keys;
    for (int64_t e = 0; e < std::ssize(values); ++e) {
      const int64_t example = e / rows, row = e % rows;
      switch (input) {
        case kQuerySegments:
        case kKeySegments:
          values[e] = SegmentAt(example, row, rows, query);
          break;
        case kPrefixEnds:
          values[e] = PrefixEndAt(example, row, rows);
          break;
        case kQueryPositions:  // restarts inside the row, as in packed examples
        case kKeyPositions:
          values[e] = static_cast<int32_t>(row % (rows / 2 + 1));
          break;
        case kKeyBlocks:  // in ascending order; of some, the last is none
          values[e] = static_cast<int32_t>(e % read + e / read % 2);
          if (e % (3 * read) == 3 * read - 1) values[e] = 99;
          break;
        default:
          values[e] = static_cast<int32_t>(z.keys - z.queries - 1);
          break;
      }
    }
  };
  return {name + (dtype_ == DType::kBF16 ? "_bf16" : "_f32"),
          AttributesOf(z_.heads, pattern_, block_, bias_reach_), inputs_, fill,
          FillBias(z_.queries, z_.keys, bias_reach_)};
}

}  // namespace

FillNumbers FillBias(int64_t queries, int64_t keys, int64_t bias_reach) {
  if (bias_reach == 0) return {};
  return [=](int input, std::span<double> values) {
    if (input != kBias) return;
    const int64_t line = queries + keys - 1, middle = queries - 1;
    for (int64_t e = 0; e < std::ssize(values); ++e) {
      const int64_t difference = std::clamp(e % line - middle, -bias_reach, bias_reach);
      values[e] = values[e / line * line + middle + difference];
    }
  };
}

std::vector<OpCase> Cases() {
  std::vector<OpCase> cases;
  for (DType type : {DType::kF32, DType::kBF16}) {
    const CaseDimensions self, cross{.queries = 5, .keys = 7},
        packed{.batch = 3, .queries = 8, .keys = 8};
    const CaseDimensions padded{.batch = 4, .queries = 8, .keys = 8, .head_size = 8};
    const CaseDimensions padded_cross{.batch = 4, .queries = 5, .keys = 9, .head_size = 8};
    const CaseDimensions step{.queries = 1, .keys = 7};
    const CaseDimensions few{.queries = 10, .keys = 19}, many{.queries = 13, .keys = 5};
    const auto add = [&](const char* name, const CaseBuilder& builder) {
      cases.push_back(builder.Build(name));
    };
    add("dot", CaseBuilder(type, self).Dot());
    add("dot_bias", CaseBuilder(type, self).Dot().Bias());
    add("dot_bias_reach", CaseBuilder(type, cross).Dot().Bias(2));
    add("dot_packed_bias_reach", CaseBuilder(type, packed).Causal().Dot().Bias(3).Segments());
    add("dot_causal", CaseBuilder(type, self).Causal().Dot());
    add("dot_cross", CaseBuilder(type, cross).Dot());
    add("dot_packed", CaseBuilder(type, packed).Dot().Segments());
    add("dot_causal_few_queries", CaseBuilder(type, few).Causal().Dot());
    add("bias_causal_few_queries", CaseBuilder(type, few).Causal().Bias());
    add("dot_causal_many_queries", CaseBuilder(type, many).Causal().Dot());
    add("dot_packed_causal_bias", CaseBuilder(type, packed).Causal().Dot().Bias().Segments());
    add("random", CaseBuilder(type, self).Table(2, 9, 9));
    add("random_bias_causal", CaseBuilder(type, self).Causal().Table(2, 6, 6).Bias());
    add("random_packed", CaseBuilder(type, packed).Table(2, 8, 10).Segments());
    add("random_shared_heads", CaseBuilder(type, self).Table(1, 7, 7));
    add("random_shared_queries", CaseBuilder(type, self).Table(2, 1, 7));
    add("random_padded", CaseBuilder(type, padded).Table(2, 9, 9).Segments());
    add("random_padded_causal_bias",
        CaseBuilder(type, padded).Causal().Table(2, 8, 8).Bias().Segments());
    add("random_padded_cross_bias",
        CaseBuilder(type, padded_cross).Table(2, 6, 9).Bias().Segments());
    add("random_padded_shared_heads", CaseBuilder(type, padded).Table(1, 8, 11).Segments());
    add("random_padded_one_row", CaseBuilder(type, padded).Causal().Table(1, 1, 9).Segments());
    add("bias_padded", CaseBuilder(type, padded).Bias().Segments());
    add("bias_causal", CaseBuilder(type, self).Causal().Bias());
    add("bias_padded_reach", CaseBuilder(type, padded_cross).Bias(1).Segments());
    add("dot_prefix", CaseBuilder(type, self).Causal().Dot().Prefixes());
    add("dot_packed_prefix_bias",
        CaseBuilder(type, packed).Causal().Dot().Bias().Segments().Prefixes());
    add("random_padded_prefix_bias",
        CaseBuilder(type, padded).Causal().Table(2, 8, 8).Bias().Segments().Prefixes());
    add("factorized_prefix", CaseBuilder(type, padded).Causal().Factorized(3, 3).Prefixes());
    add("long_prefix", CaseBuilder(type, {.queries = 150, .keys = 150, .head_size = 28})
                           .Causal()
                           .Dot()
                           .Factorized(15, 10)
                           .Prefixes());
    add("everything_prefix", CaseBuilder(type, packed)
                                 .Causal()
                                 .Dot()
                                 .Dense(3, 5, true)
                                 .Factorized(3, 2)
                                 .Table(2, 6, 5)
                                 .Bias()
                                 .Segments()
                                 .Positions()
                                 .Prefixes());
    add("mean", CaseBuilder(type, self));
    add("dense", CaseBuilder(type, self).Dense(3, 8, false));
    add("dense_per_head_packed", CaseBuilder(type, packed).Dense(3, 8, true).Segments());
    add("dense_dot", CaseBuilder(type, self).Causal().Dense(4, 6, false).Dot());
    add("factorized", CaseBuilder(type, self).Factorized(3, 3));
    add("factorized_dot", CaseBuilder(type, packed).Causal().Factorized(4, 2).Dot().Segments());
    add("everything", CaseBuilder(type, packed)
                          .Causal()
                          .Dot()
                          .Dense(3, 9, false)
                          .Factorized(3, 3)
                          .Table(1, 9, 9)
                          .Bias()
                          .Segments());
    add("window", CaseBuilder(type, self).Dot().Window(2));
    add("window_causal_bias", CaseBuilder(type, packed).Causal().Dot().Bias().Segments().Window(3));
    add("window_globals", CaseBuilder(type, packed).Dot().Bias().Segments().Window(2, 2, 1));
    add("window_globals_causal", CaseBuilder(type, packed).Causal().Dot().Window(2, 3, 2));
    add("window_cross", CaseBuilder(type, padded_cross).Dot().Bias().Segments().Window(2, 1, 2));
    add("window_table", CaseBuilder(type, packed).Dot().Table(2, 8, 8).Segments().Window(3));
    add("window_step", CaseBuilder(type, step).Causal().Dot().Bias().Start().Window(2, 2, 1));
    add("blocks", CaseBuilder(type, cross).Dot().Bias().Blocks(2, 2, 2));
    add("blocks_packed", CaseBuilder(type, packed).Causal().Dot().Segments().Blocks(1, 3, 2));
    add("positions", CaseBuilder(type, packed)
                         .Dot()
                         .Dense(3, 5, true)
                         .Factorized(3, 2)
                         .Table(2, 6, 5)
                         .Segments()
                         .Positions());
    add("random_positions", CaseBuilder(type, packed).Table(2, 5, 5).Segments().Positions());
    add("random_step", CaseBuilder(type, step).Causal().Table(2, 7, 7).Start());
    add("everything_step", CaseBuilder(type, step)
                               .Causal()
                               .Dot()
                               .Dense(3, 8, false)
                               .Factorized(3, 3)
                               .Table(2, 8, 8)
                               .Bias()
                               .Start());
    add("long_step", CaseBuilder(type, {.queries = 1, .keys = 150, .head_size = 28})
                         .Causal()
                         .Dot()
                         .Table(1, 150, 150)
                         .Start());
  }
  return cases;
}

}  // namespace syntra::attention
