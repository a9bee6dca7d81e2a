// SPDX-License-Identifier: Apache-2.0
// attention: one softmax over a sum of score terms (Synthesizer, Tay et al. 2021, section 3), and
// its gradient.
//
//   S[b,h,i,j] = q_i . k_j + u_i . p_j + a_i[j mod Na] * b_i[j div Na] + table[h,i,j]
//                + bias[h, j - i + T - 1]
//   Y[b,i,h] = sum_j softmax_j(S[b,h,i,:])_j V[b,j,h]
//   log_sum_exp[b,h,i] = log sum_j exp(S[b,h,i,j])
//
// for T queries i and S keys j, of which a query reads those that its masks allow. The gradient
// reads log_sum_exp.
#include "kernels/ops/attention.h"

#include <algorithm>
#include <cstdlib>

#include "base/error.h"

namespace syntra {
namespace attention {
namespace {

// The number of queries is taken from the first operand that has it. If self-attention uses only a
// table, no operand has it: then every position is a query or, in decoding, there is one query.
int64_t QueryCount(std::span<const TensorType> inputs) {
  if (inputs.size() == kGradientInputCount) return inputs[kGivenDY].shape[1];
  for (int i : {kQuery, kU, kA, kQuerySegments, kQueryPositions, kPrefixEnds}) {
    if (inputs[i].present()) return inputs[i].shape[1];
  }
  if (inputs[kBias].present()) return inputs[kBias].shape[1] - inputs[kValue].shape[1] + 1;
  return inputs[kQueryStart].present() ? 1 : inputs[kValue].shape[1];
}

void CheckShape(const TensorType& type, std::initializer_list<int64_t> dims, const char* name) {
  if (!type.present()) return;
  const Shape expected(dims);
  SYNTRA_CHECK(type.shape == expected, "attention: {} is {}, expected {}", name, ToString(type),
               ToString(expected));
}

void CheckOperands(std::span<const TensorType> inputs, const Dimensions& z) {
  const int64_t width = z.heads * z.head_size;
  const auto together = [&](int first, int second, const char* names) {
    SYNTRA_CHECK(inputs[first].present() == inputs[second].present(), "attention: {} come together",
                 names);
  };
  together(kQuery, kKey, "query and key");
  together(kU, kPositions, "u and positions");
  together(kA, kB, "a and b");
  together(kQuerySegments, kKeySegments, "query and key segments");
  together(kQueryPositions, kKeyPositions, "query and key positions");
  SYNTRA_CHECK(inputs[kKeyBlocks].present() == (z.block > 0),
               "attention: key blocks of {} rows come with their attribute", z.block);
  SYNTRA_CHECK(z.block == 0 || !z.pattern.is_window(), "attention: key blocks and a window");
  for (int i : {kQuery, kKey, kU, kA, kB}) {
    SYNTRA_CHECK(!inputs[i].present() || inputs[i].dtype == inputs[kValue].dtype,
                 "attention: operand {} is {}, value is {}", i, ToString(inputs[i]),
                 ToString(inputs[kValue]));
  }
  CheckShape(inputs[kQuery], {z.batch, z.queries, width}, "query");
  CheckShape(inputs[kKey], {z.batch, z.keys, width}, "key");
  CheckShape(inputs[kU], {z.batch, z.queries, z.heads * z.features}, "u");
  CheckShape(inputs[kA], {z.batch, z.queries, z.heads * z.a_size}, "a");
  CheckShape(inputs[kB], {z.batch, z.queries, z.heads * z.b_size}, "b");
  CheckShape(inputs[kBias], {z.heads, z.queries + z.keys - 1}, "bias");
  SYNTRA_CHECK(z.bias_reach == 0 || (z.bias_reach > 0 && inputs[kBias].present()),
               "attention: bias_reach {} of bias {}", z.bias_reach, ToString(inputs[kBias]));
  CheckShape(inputs[kQuerySegments], {z.batch, z.queries}, "query segments");
  CheckShape(inputs[kKeySegments], {z.batch, z.keys}, "key segments");
  CheckShape(inputs[kQueryPositions], {z.batch, z.queries}, "query positions");
  CheckShape(inputs[kKeyPositions], {z.batch, z.keys}, "key positions");
  if (z.block > 0) {
    SYNTRA_CHECK(z.block_heads == 1 || z.block_heads == z.heads,
                 "attention: key blocks {} for {} heads", ToString(inputs[kKeyBlocks]), z.heads);
    CheckShape(inputs[kKeyBlocks], {z.block_heads, z.QueryBlocks(), z.blocks_read}, "key blocks");
  }
  CheckShape(inputs[kPrefixEnds], {z.batch, z.queries}, "prefix ends");
  SYNTRA_CHECK(!inputs[kPrefixEnds].present() || (z.pattern.causal && !z.IsSparse()),
               "attention: prefix ends are for causal attention to all keys");
  SYNTRA_CHECK(inputs[kValue].shape[2] == width, "attention: {} heads do not divide value {}",
               z.heads, ToString(inputs[kValue]));
}

// Checks heads and features of the tables and, without positions, that the tables are large enough.
// With positions that depends on the data.
void CheckExtents(std::span<const TensorType> inputs, const Dimensions& z) {
  if (inputs[kTable].present()) {
    SYNTRA_CHECK(z.table_heads == 1 || z.table_heads == z.heads, "attention: table {} for {} heads",
                 ToString(inputs[kTable]), z.heads);
  }
  if (inputs[kPositions].present()) {
    const Shape& shape = inputs[kPositions].shape;
    SYNTRA_CHECK(shape[-2] == z.features && (shape.rank() == 2 || shape[0] == z.heads),
                 "attention: positions {} for {} features and {} heads",
                 ToString(inputs[kPositions]), z.features, z.heads);
  }
  if (inputs[kKeyPositions].present()) return;
  const bool from_start = inputs.size() == kInputCount && inputs[kQueryStart].present();
  SYNTRA_CHECK(!inputs[kTable].present() ||
                   (z.table_keys >= z.keys &&
                    (from_start || z.table_queries == 1 || z.table_queries >= z.queries)),
               "attention: table {} is too small for {} queries and {} keys",
               ToString(inputs[kTable]), z.queries, z.keys);
  SYNTRA_CHECK(!inputs[kPositions].present() || z.position_extent >= z.keys,
               "attention: positions {} for {} keys", ToString(inputs[kPositions]), z.keys);
  SYNTRA_CHECK(!inputs[kA].present() || z.a_size * z.b_size >= z.keys,
               "attention: factors {} x {} for {} keys", z.a_size, z.b_size, z.keys);
}

std::vector<TensorType> Infer(const Attributes& attributes, std::span<const TensorType> inputs) {
  SYNTRA_CHECK(inputs.size() == kInputCount, "attention takes {} inputs, not {}",
               static_cast<int>(kInputCount), inputs.size());
  const Dimensions z = DimensionsOf(attributes, inputs);
  return {{inputs[kValue].dtype, {z.batch, z.queries, z.heads * z.head_size}},
          {DType::kF32, {z.batch, z.heads, z.queries}}};
}

std::vector<TensorType> InferGradient(const Attributes& attributes,
                                      std::span<const TensorType> inputs) {
  SYNTRA_CHECK(inputs.size() == kGradientInputCount, "attention_grad takes {} inputs, not {}",
               static_cast<int>(kGradientInputCount), inputs.size());
  DimensionsOf(attributes, inputs);
  return {inputs.begin(), inputs.begin() + kGradientOutputCount};
}

void Gradient(GradientRule& rule) {
  SYNTRA_CHECK(!rule.input(kQueryStart), "attention from a query_start has no gradient");
  SYNTRA_CHECK(!rule.output_gradient(kLogSumExp), "attention's log_sum_exp has no gradient");
  if (!rule.output_gradient(kY)) return;
  std::vector<Value> inputs;
  for (int i = 0; i < kSharedInputs; ++i) inputs.push_back(rule.input(i));
  inputs.push_back(rule.output(kY));
  inputs.push_back(rule.output(kLogSumExp));
  inputs.push_back(rule.output_gradient(kY));
  std::vector<int> targets;
  for (int g = 0; g < kGradientOutputCount; ++g) targets.push_back(g);
  rule.Contribute("attention_grad", rule.attributes(), std::move(inputs), std::move(targets));
}

// How many of `count` rows from `first` on are in steps of `step` from `row`.
int64_t CountInSteps(int64_t first, int64_t count, int64_t row, int64_t step) {
  if (count <= 0) return 0;
  const int64_t before = ((row - first) % step + step) % step;  // rows to the first one of them
  return before < count ? (count - before - 1) / step + 1 : 0;
}

// The keys that a query reads by its pattern.
int64_t KeysOf(const Pattern& pattern, int64_t query, int64_t keys) {
  const int64_t end = pattern.causal ? std::min(keys, query + 1) : keys;
  if (!pattern.is_window() || query < pattern.globals) return end;
  const int64_t reach = pattern.window * pattern.dilation;
  const int64_t globals = std::min(pattern.globals, end);
  const int64_t first = std::max(globals, query - reach + 1);
  return globals +
         CountInSteps(first, std::min(end, query + reach) - first, query, pattern.dilation);
}

// The number of pairs of queries and keys whose scores count. Key blocks count as if all
// numbers were valid, and query_start as if it were as late as the keys allow: both depend on the
// data.
double PairCount(const OpCall& call, const Dimensions& z) {
  const bool starts = call.inputs.size() == kInputCount && call.inputs[kQueryStart].present();
  const int64_t start = starts ? z.keys - z.queries : 0;
  double pairs = 0;
  for (int64_t query = start; query < start + z.queries; ++query) {
    const int64_t keys = KeysOf(z.pattern, query, z.keys);
    pairs += static_cast<double>(z.block > 0 ? std::min(keys, z.blocks_read * z.block) : keys);
  }
  return pairs;
}

// Counts the multiply-adds of the products over allowed pairs. It ignores padding and segments,
// which depend on the data.
double ScoreAndValueFlops(const OpCall& call) {
  const Dimensions z = DimensionsOf(call.attributes, call.inputs);
  const double pairs = PairCount(call, z);
  double width = z.head_size + z.features + (call.inputs[kA].present() ? 1 : 0);
  if (call.inputs[kQuery].present()) width += z.head_size;
  return 2.0 * z.batch * z.heads * pairs * width;
}

// Each product of the forward pass has two gradients, as far as they are wanted. All but that of
// the values need the gradient of the weights. Recomputed scores are not counted.
double GradientFlops(const OpCall& call) {
  const Dimensions z = DimensionsOf(call.attributes, call.inputs);
  const auto wanted = [&](Input i) { return call.outputs[i].present() ? 1.0 : 0.0; };
  bool of_weights = false;
  for (int i = 0; i < kGradientOutputCount; ++i) {
    of_weights |= i != kValue && call.outputs[i].present();
  }
  const double width = z.head_size * (of_weights + wanted(kQuery) + wanted(kKey) + wanted(kValue)) +
                       z.features * (wanted(kU) + wanted(kPositions)) + wanted(kA) + wanted(kB);
  return 2.0 * z.batch * z.heads * PairCount(call, z) * width;
}

// A layer's queries, keys and values come from one product, and so do their gradients.
constexpr uint64_t kProjected = 1 << kQuery | 1 << kKey | 1 << kValue;
OperandSet Columns(const OpCall& call) {
  return {call.inputs[kQuery].present() ? kProjected : 0, 0};
}
OperandSet GradientColumns(const OpCall& call) {
  const uint64_t set = call.inputs[kQuery].present() ? kProjected : 0;
  return {set, set};
}

}  // namespace

Dimensions::Entries Dimensions::EntriesOf(int64_t k) const {
  const int64_t difference = k - (queries - 1), distance = std::abs(difference);
  if (bias_reach == 0 || distance < bias_reach) return {k, k + 1};
  if (distance > bias_reach) return {k, k};
  return difference < 0 ? Entries{0, k + 1} : Entries{k, queries + keys - 1};
}

Attributes AttributesOf(int64_t heads, const Pattern& pattern, int64_t block, int64_t bias_reach) {
  return {{"heads", heads},
          {"causal", pattern.causal},
          {"window", pattern.window},
          {"dilation", pattern.dilation},
          {"globals", pattern.globals},
          {"block", block},
          {"bias_reach", bias_reach}};
}

Dimensions DimensionsOf(const Attributes& attributes, std::span<const TensorType> inputs) {
  SYNTRA_CHECK(inputs[kValue].present(), "attention needs a value");
  const Shape& value = inputs[kValue].shape;
  Dimensions z{.batch = value[0],
               .queries = QueryCount(inputs),
               .keys = value[1],
               .heads = attributes.Int("heads"),
               .head_size = value[2] / attributes.Int("heads"),
               .value_pitch = inputs[kValue].row_pitch(),
               .pattern = {.causal = attributes.Flag("causal"),
                           .window = attributes.Int("window"),
                           .dilation = attributes.Int("dilation"),
                           .globals = attributes.Int("globals")},
               .block = attributes.Int("block"),
               .bias_reach = attributes.Int("bias_reach")};
  if (inputs[kQuery].present()) z.query_pitch = inputs[kQuery].row_pitch();
  if (inputs[kKey].present()) z.key_pitch = inputs[kKey].row_pitch();
  if (inputs[kU].present()) z.features = inputs[kU].shape[2] / z.heads;
  if (inputs[kPositions].present()) {
    z.position_extent = inputs[kPositions].shape[-1];
    z.positions_per_head = inputs[kPositions].shape.rank() == 3;
  }
  if (inputs[kA].present()) z.a_size = inputs[kA].shape[2] / z.heads;
  if (inputs[kB].present()) z.b_size = inputs[kB].shape[2] / z.heads;
  if (inputs[kTable].present()) {
    z.table_heads = inputs[kTable].shape[0];
    z.table_queries = inputs[kTable].shape[1];
    z.table_keys = inputs[kTable].shape[2];
  }
  if (inputs[kKeyBlocks].present()) {
    z.block_heads = inputs[kKeyBlocks].shape[0];
    z.blocks_read = inputs[kKeyBlocks].shape[2];
  }
  CheckOperands(inputs, z);
  CheckExtents(inputs, z);
  return z;
}

}  // namespace attention

Op op_attention() {
  return {.infer = &attention::Infer,
          .reference = &attention::Reference,
          .gradient = &attention::Gradient,
          .cases = &attention::Cases,
          .flops = &attention::ScoreAndValueFlops,
          .takes_columns = &attention::Columns};
}

Op op_attention_grad() {
  return {.infer = &attention::InferGradient,
          .reference = &attention::ReferenceGradient,
          .flops = &attention::GradientFlops,
          .takes_columns = &attention::GradientColumns};
}

}  // namespace syntra
