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

#include "kernels/ops/shapes.h"

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

// Checks which operands are there, their element types and ranks. `others` follow those that
// attention and its gradient share.
void CheckKinds(std::string_view op, std::span<const TensorType> inputs,
                std::initializer_list<Operand> others) {
  std::vector<Operand> operands = {{"query", kActivation, 3, true},
                                   {"key", kActivation, 3, true},
                                   {"value", kActivation, 3},
                                   {"u", kActivation, 3, true},
                                   {"positions", kParameter, AtLeast(2), true},
                                   {"a", kActivation, 3, true},
                                   {"b", kActivation, 3, true},
                                   {"table", kParameter, 3, true},
                                   {"bias", kParameter, 2, true},
                                   {"query segments", kInteger, 2, true},
                                   {"key segments", kInteger, 2, true},
                                   {"query positions", kInteger, 2, true},
                                   {"key positions", kInteger, 2, true},
                                   {"key blocks", kInteger, 3, true},
                                   {"prefix ends", kInteger, 2, true}};
  operands.insert(operands.end(), others);
  CheckOperands(op, inputs, operands);
  const auto together = [&](int first, int second) {
    SYNTRA_CHECK(inputs[first].present() == inputs[second].present(), "{}: {} and {} come together",
                 op, operands[first].name, operands[second].name);
  };
  together(kQuery, kKey);
  together(kU, kPositions);
  together(kA, kB);
  together(kQuerySegments, kKeySegments);
  together(kQueryPositions, kKeyPositions);
}

void CheckAttributes(std::string_view op, const Attributes& attributes,
                     std::span<const TensorType> inputs) {
  const int64_t heads = attributes.Int("heads");
  SYNTRA_CHECK(heads >= 1 && inputs[kValue].shape[2] % heads == 0,
               "{}: {} heads do not divide value {}", op, heads, ToString(inputs[kValue]));
  const int64_t window = attributes.Int("window"), block = attributes.Int("block");
  const int64_t reach = attributes.Int("bias_reach");
  const bool prefixes = inputs[kPrefixEnds].present();
  SYNTRA_CHECK(window >= 0 && attributes.Int("dilation") >= 1 && attributes.Int("globals") >= 0 &&
                   (window > 0) + (block > 0) + prefixes <= 1,
               "{}: {}{}", op, attributes.ToString(), prefixes ? " with prefixes" : "");
  SYNTRA_CHECK(!prefixes || attributes.Flag("causal"), "{}: prefixes are for causal attention", op);
  SYNTRA_CHECK(block >= 0 && inputs[kKeyBlocks].present() == (block > 0),
               "{}: key blocks {} of {} rows", op, ToString(inputs[kKeyBlocks]), block);
  SYNTRA_CHECK(reach == 0 || (reach > 0 && inputs[kBias].present()), "{}: bias_reach {} of bias {}",
               op, reach, ToString(inputs[kBias]));
}

void CheckShapes(std::string_view op, std::span<const TensorType> inputs, const Dimensions& z) {
  const auto check = [&](const char* name, Input input, int64_t rows, int64_t width) {
    if (!inputs[input].present()) return;
    CheckType(op, name, inputs[input], {inputs[kValue].dtype, {z.batch, rows, z.heads * width}});
  };
  check("query", kQuery, z.queries, z.head_size);
  check("key", kKey, z.keys, z.head_size);
  check("u", kU, z.queries, z.features);
  check("a", kA, z.queries, z.a_size);
  check("b", kB, z.queries, z.b_size);
  CheckShape(op, "bias", inputs[kBias], {z.heads, z.queries + z.keys - 1});
  const Shape queries = {z.batch, z.queries}, keys = {z.batch, z.keys};
  CheckShape(op, "query segments", inputs[kQuerySegments], queries);
  CheckShape(op, "key segments", inputs[kKeySegments], keys);
  CheckShape(op, "query positions", inputs[kQueryPositions], queries);
  CheckShape(op, "key positions", inputs[kKeyPositions], keys);
  CheckShape(op, "prefix ends", inputs[kPrefixEnds], queries);
  if (z.block == 0) return;
  SYNTRA_CHECK(z.block_heads == 1 || z.block_heads == z.heads, "{}: key blocks {} for {} heads", op,
               ToString(inputs[kKeyBlocks]), z.heads);
  CheckShape(op, "key blocks", inputs[kKeyBlocks], {z.block_heads, z.QueryBlocks(), z.blocks_read});
}

// Checks heads and features of the tables and, without positions, that the tables are large enough.
// With positions that depends on the data.
void CheckExtents(std::string_view op, std::span<const TensorType> inputs, const Dimensions& z) {
  SYNTRA_CHECK(!inputs[kTable].present() || z.table_heads == 1 || z.table_heads == z.heads,
               "{}: table {} for {} heads", op, ToString(inputs[kTable]), z.heads);
  if (inputs[kPositions].present()) {
    const Shape& shape = inputs[kPositions].shape;
    SYNTRA_CHECK(shape[-2] == z.features &&
                     (shape.rank() == 2 || (shape.rank() == 3 && shape[0] == z.heads)),
                 "{}: positions {} for {} features and {} heads", op, ToString(inputs[kPositions]),
                 z.features, z.heads);
  }
  if (inputs[kKeyPositions].present()) return;
  const bool from_start = inputs.size() == kInputCount && inputs[kQueryStart].present();
  SYNTRA_CHECK(!inputs[kTable].present() ||
                   (z.table_keys >= z.keys &&
                    (from_start || z.table_queries == 1 || z.table_queries >= z.queries)),
               "{}: table {} is too small for {} queries and {} keys", op, ToString(inputs[kTable]),
               z.queries, z.keys);
  SYNTRA_CHECK(!inputs[kPositions].present() || z.position_extent >= z.keys,
               "{}: positions {} for {} keys", op, ToString(inputs[kPositions]), z.keys);
  SYNTRA_CHECK(!inputs[kA].present() || z.a_size * z.b_size >= z.keys,
               "{}: factors {} x {} for {} keys", op, z.a_size, z.b_size, z.keys);
}

// The dimensions of a call that keeps the contract.
Dimensions Checked(std::string_view op, const Attributes& attributes,
                   std::span<const TensorType> inputs, std::initializer_list<Operand> others) {
  CheckKinds(op, inputs, others);
  CheckAttributes(op, attributes, inputs);
  const Dimensions z = DimensionsOf(attributes, inputs);
  CheckShapes(op, inputs, z);
  CheckExtents(op, inputs, z);
  return z;
}

std::vector<TensorType> Infer(const Attributes& attributes, std::span<const TensorType> inputs) {
  const Dimensions z =
      Checked("attention", attributes, inputs, {{"query start", kInteger, 1, true}});
  CheckShape("attention", "query start", inputs[kQueryStart], {1});
  return {{inputs[kValue].dtype, {z.batch, z.queries, z.heads * z.head_size}},
          F32({z.batch, z.heads, z.queries})};
}

std::vector<TensorType> InferGradient(const Attributes& attributes,
                                      std::span<const TensorType> inputs) {
  const Dimensions z =
      Checked("attention_grad", attributes, inputs,
              {{"y", kActivation, 3}, {"log_sum_exp", kParameter, 3}, {"dy", kActivation, 3}});
  const TensorType y = {inputs[kValue].dtype, {z.batch, z.queries, z.heads * z.head_size}};
  CheckType("attention_grad", "y", inputs[kGivenY], y);
  CheckType("attention_grad", "dy", inputs[kGivenDY], y);
  CheckShape("attention_grad", "log_sum_exp", inputs[kGivenLogSumExp],
             {z.batch, z.heads, z.queries});
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
