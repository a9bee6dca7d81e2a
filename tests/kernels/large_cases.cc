// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/large_cases.h"

#include <map>

#include "kernels/bit_mask.h"
#include "kernels/ops/attention.h"
#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

using Cases = std::vector<LargeCase>;

void AddActivations(Cases& cases, DType dtype, int64_t width) {
  const std::string name = "large_" + DTypeName(dtype) + "_" + std::to_string(width);
  const TensorType x = {dtype, {3, 41, width}}, keys = I32({3, 2}), scale = F32({width});
  for (bool per_element : {false, true}) {
    const Attributes noise = {{"epsilon", 1e-6},
                              {"rate", 0.1},
                              {"site", 5},
                              {"per_element", per_element},
                              {"group", int64_t{1}}};
    const std::string masked = name + (per_element ? "_element" : "_shared");
    cases.push_back({"add_norm", {masked, noise, {x, x, scale, keys}, {}}});
    cases.push_back({"add_norm_grad", {masked, noise, {x, scale, F32({3, 41}), x, x, keys}, {}}});
    cases.push_back({"dropout", {masked, noise, {x, keys}, {}}});
    cases.push_back({"gated_gelu_dropout", {masked, noise, {x, x, keys}, {}}});
  }
  cases.push_back({"activation", {name, {{"kind", "relu"}}, {x}, {}}});
  cases.push_back({"gated_gelu", {name, {}, {x, x}, {}}});
  cases.push_back(
      {"embedding_grad", {name, {{"vocabulary", 50}}, {I32({3, 41}), x}, FillBetween(0, 49)}});
}

// Rows that a few threads take and rows that many take, of whole pieces of eight and not.
void AddWidths(Cases& cases) {
  const Attributes none = {{"epsilon", 1e-6}, {"rate", 0.0}, {"site", 0}, {"per_element", false}};
  for (const int64_t width : {40, 264, 1020, 1024, 1032, 2056}) {
    const TensorType x = {DType::kBF16, {1, 19, width}}, scale = F32({width});
    const std::string name = "wide_" + std::to_string(width);
    cases.push_back({"add_norm", {name, none, {x, x, scale, None()}, {}}});
    cases.push_back({"add_norm_grad", {name, none, {x, scale, F32({1, 19}), x, x, None()}, {}}});
  }
}

void AddMasks(Cases& cases) {
  for (int64_t rate : {1, 500, 900, 999}) {
    const Attributes noise = {{"rate", static_cast<double>(rate) / 1000},
                              {"site", 77},
                              {"per_element", true},
                              {"group", 1}};
    cases.push_back(
        {"dropout", {"rate_" + std::to_string(rate), noise, {F32({2, 9, 67}), I32({2, 2})}, {}}});
  }
}

void AddTables(Cases& cases) {
  cases.push_back(
      {"relative_bias_grad",
       {"large",
        {{"buckets", 32}, {"queries", 130}, {"bidirectional", true}, {"max_distance", 128}},
        {F32({3, 279})},
        {}}});
}

// Several parts, pieces and blocks of sums, on either side of what is kept.
void AddSums(Cases& cases) {
  const auto add = [&](const char* name, Attributes::Integers shape, TensorType x,
                       TensorType factor) {
    cases.push_back({"sum_to",
                     {name,
                      {{"shape", std::move(shape)}, {"dtype", "f32"}},
                      {std::move(x), std::move(factor)},
                      {}}});
  };
  add("large_columns", {1030}, BF16({3, 41, 1030}), None());
  add("large_rows", {70, 1}, BF16({70, 1100}), BF16({70, 1100}));
  add("large_all", {1}, F32({3, 41, 1030}), None());
  add("large_heads", {3, 1, 600}, F32({3, 70, 600}), None());
}

// Several squares of cache lines, with remainders.
void AddTranspositions(Cases& cases, DType dtype) {
  const Attributes::Integers columns_first = {0, 2, 1};
  cases.push_back(
      {"transpose",
       {"large_" + DTypeName(dtype), {{"axes", columns_first}}, {{dtype, {2, 70, 133}}}, {}}});
}

void AddParameters(Cases& cases) {
  for (bool rms_scaled : {false, true}) {
    cases.push_back(
        {"adamw",
         {rms_scaled ? "large_rms_scaled" : "large",
          {{"beta1", 0.9}, {"beta2", 0.98}, {"epsilon", 1e-6}, {"rms_scaled", rms_scaled}},
          {F32({301, 200}), F32({5})},
          {}}});
  }
  const auto adafactor = [&](const char* name, int64_t row_axis, int64_t column_axis) {
    cases.push_back(
        {"adafactor",
         {name,
          {{"row_axis", row_axis}, {"column_axis", column_axis}, {"clip_threshold", 0.3}},
          {F32({3, 150, 140}), F32({3})},
          {}}});
  };
  adafactor("large", 1, 2);
  adafactor("large_swapped", 2, 1);
  adafactor("large_full", 0, -1);
}

void AddProducts(Cases& cases, DType dtype) {
  const std::string name = "large_" + DTypeName(dtype);
  const auto with = [](bool transpose_a, bool transpose_b, DType result) {
    return Attributes{
        {"transpose_a", transpose_a}, {"transpose_b", transpose_b}, {"dtype", DTypeName(result)}};
  };
  const TensorType x = {dtype, {2, 100, 130}};
  // Enough rows for products with a packed operand.
  const TensorType rows = {dtype, {2, 130, 130}};
  cases.push_back({"matmul", {name, with(false, false, dtype), {x, F32({130, 301})}, {}}});
  cases.push_back({"matmul_relu", {name, with(false, false, dtype), {rows, F32({130, 301})}, {}}});
  cases.push_back(
      {"masked_matmul",
       {name, with(false, true, dtype), {rows, F32({301, 130}), MaskOf({2, 130, 301})}, {}}});
  if (dtype == DType::kBF16) {
    // As many tiles as Hopper GPUs have kernels of their own for.
    const TensorType many = {dtype, {2, 530, 72}};
    cases.push_back(
        {"matmul_relu", {name + "_tiles", with(false, false, dtype), {many, F32({72, 1024})}, {}}});
    cases.push_back({"masked_matmul",
                     {name + "_tiles",
                      with(false, true, dtype),
                      {many, F32({1024, 72}), MaskOf({2, 530, 1024})},
                      {}}});
  }
  cases.push_back(
      {"matmul", {name + "_transposed", with(false, true, dtype), {x, F32({301, 130})}, {}}});
  cases.push_back({"matmul",
                   {name + "_rows",
                    with(true, false, DType::kF32),
                    {{dtype, {5, 600, 67}}, {dtype, {5, 600, 90}}},
                    {}}});
  cases.push_back(
      {"head_matmul", {name, {{"heads", 8}}, {{dtype, {2, 50, 8 * 21}}, F32({8, 21, 37})}, {}}});

  const Attributes loss = {
      {"scale", 0.3}, {"z_loss", 1e-3}, {"label_smoothing", 0.1}, {"first", int64_t{0}}};
  std::vector<TensorType> tokens = {
      {dtype, {5, 103, 19}}, F32({3001, 19}), I32({5, 103}), F32({1})};
  const FillIntegers targets = FillBetween(-300, 3000);
  cases.push_back({"linear_cross_entropy", {name, loss, tokens, targets}});
  tokens.push_back(F32({1}));
  cases.push_back({"linear_cross_entropy_grad", {name, loss, tokens, targets}});
  cases.push_back(
      {"linear_argmax", {name, {{"scale", 0.3}}, {{dtype, {7, 1, 67}}, F32({3001, 67})}, {}}});
}

// Each score term alone over more rows than a block: heads of 32, values of 32.
void AddAttention(Cases& cases, DType dtype) {
  constexpr int64_t kBatch = 2, kRows = 71, kHeads = 3, kTable = 96;
  const auto rows = [&](int64_t width) {
    return TensorType{dtype, {kBatch, kRows, kHeads * width}};
  };
  const auto add = [&](const char* name, bool causal, std::map<int, TensorType> inputs) {
    std::vector<TensorType> types(attention::kInputCount, None());
    types[2] = rows(32);
    for (const auto& [i, type] : inputs) types[i] = type;
    cases.push_back(
        {"attention",
         {std::string("large_") + name + "_" + DTypeName(dtype),
          attention::AttributesOf(kHeads, {.causal = causal}), types, FillBetween(1, 2)}});
  };
  const TensorType segments = I32({kBatch, kRows});
  add("dot", true, {{0, rows(32)}, {1, rows(32)}, {8, F32({kHeads, 2 * kRows - 1})}});
  add("packed", false, {{0, rows(32)}, {1, rows(32)}, {9, segments}, {10, segments}});
  add("dense", false, {{3, rows(19)}, {4, F32({19, kTable})}});
  add("dense_heads", true, {{3, rows(19)}, {4, F32({kHeads, 19, kTable})}});
  add("factorized", false, {{5, rows(70)}, {6, rows(3)}});
  add("table", true, {{7, F32({kHeads, kTable, kTable})}});
  add("shared_table", false, {{7, F32({1, kTable, kTable})}, {9, segments}, {10, segments}});
}

// Products of factors alone, perhaps with a bias, for which Hopper GPUs have kernels: with more
// tiles of keys and of queries than these have stages, and with blocks beyond the last row.
void AddFactors(Cases& cases) {
  struct Sizes {
    int64_t batch, queries, keys, heads, a, b;
  };
  const auto add = [&](const char* name, bool causal, const Sizes& z, bool bias, bool segments,
                       int64_t bias_reach = 0) {
    const auto rows = [&](int64_t count, int64_t width) {
      return TensorType{DType::kBF16, {z.batch, count, z.heads * width}};
    };
    std::vector<TensorType> types(attention::kInputCount, None());
    types[attention::kValue] = rows(z.keys, 64);
    types[attention::kA] = rows(z.queries, z.a);
    types[attention::kB] = rows(z.queries, z.b);
    if (bias) types[attention::kBias] = F32({z.heads, z.queries + z.keys - 1});
    if (segments) {
      types[attention::kQuerySegments] = I32({z.batch, z.queries});
      types[attention::kKeySegments] = I32({z.batch, z.keys});
    }
    // Two segments, and padding in all examples but the first.
    const auto fill = [z](int input, std::span<int32_t> values) {
      const int64_t rows = input == attention::kKeySegments ? z.keys : z.queries;
      for (int64_t e = 0; e < std::ssize(values); ++e) {
        const int64_t example = e / rows, row = e % rows;
        values[e] = row < rows / 2 ? 1 : row < rows - 70 * example ? 2 : 0;
      }
    };
    cases.push_back({"attention",
                     {std::string("factors_") + name,
                      attention::AttributesOf(z.heads, {.causal = causal}, 0, bias_reach), types,
                      fill, attention::FillBias(z.queries, z.keys, bias_reach)}});
  };
  add("wide", false, {2, 300, 300, 1, 32, 16}, true, true, 20);
  add("narrow", false, {2, 150, 300, 2, 16, 20}, false, false);
  add("causal", true, {3, 114, 114, 2, 32, 4}, true, true);
  add("causal_narrow", true, {1, 270, 200, 1, 16, 64}, true, false);
}

// The scores of all examples alike, over several tiles of 128, for every size of head that kernels
// are made for. All examples end in padding but the first; example 2 is packed. Of bf16 heads of
// 64, for which Hopper GPUs have kernels, some examples have no key in the last tile, one has no
// row at all, and where scores are causal no query sees a key of that tile.
void AddSharedAttention(Cases& cases, DType dtype) {
  struct Sizes {
    int64_t batch, queries, keys, heads, head_size;
  };
  const auto add = [&](const char* name, bool causal, const Sizes& z, TensorType table, bool bias) {
    std::vector<TensorType> types(attention::kInputCount, None());
    types[2] = {dtype, {z.batch, z.keys, z.heads * z.head_size}};
    types[7] = std::move(table);
    if (bias) types[8] = F32({z.heads, z.queries + z.keys - 1});
    types[9] = I32({z.batch, z.queries});
    types[10] = I32({z.batch, z.keys});
    const auto fill = [z](int input, std::span<int32_t> values) {
      const int64_t rows = input == 9 ? z.queries : z.keys;
      for (int64_t e = 0; e < std::ssize(values); ++e) {
        const int64_t example = e / rows, row = e % rows;
        const bool second = example == 2 && row >= rows / 2;
        values[e] = row >= rows - 9 * example ? 0 : second ? 8 : 7;
      }
    };
    cases.push_back({"attention",
                     {std::string("large_") + name + "_" + DTypeName(dtype),
                      attention::AttributesOf(z.heads, {.causal = causal}), types, fill}});
  };
  add("shared_32", false, {5, 130, 130, 2, 32}, F32({2, 131, 140}), false);
  add("shared_64_causal", true, {3, 150, 280, 2, 64}, F32({2, 150, 280}), true);
  if (dtype == DType::kBF16) add("shared_64", false, {9, 70, 300, 1, 64}, F32({1, 70, 300}), false);
  add("shared_128_cross", false, {4, 40, 170, 1, 128}, F32({1, 40, 170}), true);
  add("shared_40_bias", true, {4, 139, 70, 2, 40}, None(), true);
  add("shared_96_row", false, {3, 60, 133, 2, 96}, F32({2, 1, 140}), false);
}

// Of the first third of rows, and of the sixth from the middle on.
int32_t PrefixEnd(int64_t row, int64_t rows) {
  const int64_t end = row < rows / 2 ? rows / 3 : rows * 2 / 3;
  return row < end ? static_cast<int32_t>(end) : 0;
}

// Scores that are products of features, over several tiles of queries and of keys: tiles allowed as
// a whole, in part and not at all. The first example is of one segment, others are packed and end
// in padding.
void AddFeatureAttention(Cases& cases, DType dtype) {
  struct Sizes {
    int64_t batch, queries, keys, heads, head_size;
  };
  const auto add = [&](const char* name, attention::Pattern pattern, const Sizes& z,
                       int64_t features, std::map<int, TensorType> others, int64_t block = 0,
                       int64_t bias_reach = 0) {
    const auto rows = [&](int64_t count, int64_t width) {
      return TensorType{dtype, {z.batch, count, z.heads * width}};
    };
    std::vector<TensorType> types(attention::kInputCount, None());
    types[2] = rows(z.keys, z.head_size);
    if (features > 0) types[3] = rows(z.queries, features);
    for (const auto& [i, type] : others) types[i] = type;
    if (types[1].present()) types[0] = rows(z.queries, z.head_size);
    const auto fill = [z](int input, std::span<int32_t> values) {
      const bool position = input == 11 || input == 12;
      const int64_t rows = input == 10 || input == 12 ? z.keys : z.queries;
      for (int64_t e = 0; e < std::ssize(values); ++e) {
        const int64_t example = e / rows, row = e % rows;
        const int32_t segment = row < rows / 2 ? 7 : row < rows - 9 * example ? 8 : 0;
        values[e] = position ? static_cast<int32_t>(row % 37) : example == 0 ? 7 : segment;
        if (input == attention::kPrefixEnds) values[e] = PrefixEnd(row, rows);
        if (input == attention::kKeyBlocks) values[e] = static_cast<int32_t>(e % 2 + e / 4);
      }
    };
    cases.push_back({"attention",
                     {std::string("large_") + name + "_" + DTypeName(dtype),
                      attention::AttributesOf(z.heads, pattern, block, bias_reach), types, fill,
                      attention::FillBias(z.queries, z.keys, bias_reach)}});
  };
  const attention::Pattern every, no_later{.causal = true};
  const auto keys = [&](const Sizes& z) {
    return TensorType{dtype, {z.batch, z.keys, z.heads * z.head_size}};
  };
  const auto segments = [](int64_t batch, int64_t rows) { return I32({batch, rows}); };
  const Sizes causal{1, 260, 70, 1, 64}, mixed{2, 130, 100, 1, 64}, wide{1, 70, 130, 1, 72};
  const Sizes odd{2, 70, 135, 2, 40}, placed{2, 66, 100, 2, 32}, prefix{2, 200, 200, 1, 64};
  add("features_64_causal", no_later, causal, 0, {{1, keys(causal)}, {8, F32({1, 329})}});
  add("features_64_mixed", every, mixed, 24,
      {{1, keys(mixed)},
       {4, F32({24, 110})},
       {7, F32({1, 130, 110})},
       {8, F32({1, 229})},
       {9, segments(2, 130)},
       {10, segments(2, 100)}},
      0, 11);
  add("features_64_prefix", no_later, prefix, 24,
      {{1, keys(prefix)},
       {4, F32({24, 200})},
       {8, F32({1, 399})},
       {9, segments(2, 200)},
       {10, segments(2, 200)},
       {attention::kPrefixEnds, I32({2, 200})}});
  add("features_72_row", every, wide, 19,
      {{1, keys(wide)}, {4, F32({1, 19, 130})}, {7, F32({1, 1, 130})}});
  add("features_128_dense", no_later, {1, 70, 80, 1, 128}, 70, {{4, F32({70, 80})}});
  add("features_40_table", no_later, odd, 0,
      {{1, keys(odd)}, {7, F32({2, 70, 135})}, {8, F32({2, 204})}});
  add("features_32_positions", no_later, placed, 80,
      {{4, F32({80, 37})},
       {7, F32({1, 37, 37})},
       {9, segments(2, 66)},
       {10, segments(2, 100)},
       {11, I32({2, 66})},
       {12, I32({2, 100})}});
  // Windows and blocks of keys: tiles allowed as a whole, in part and not at all.
  const Sizes rows{2, 200, 200, 1, 32};
  const std::map<int, TensorType> dot{
      {1, keys(rows)}, {8, F32({1, 399})}, {9, segments(2, 200)}, {10, segments(2, 200)}};
  add("window_32", {.window = 40}, rows, 0, dot);
  add("window_32_dilated", {.causal = true, .window = 20, .dilation = 3, .globals = 5}, rows, 0,
      dot);
  std::map<int, TensorType> blocks = dot;
  blocks[attention::kKeyBlocks] = I32({1, 4, 2});
  add("blocks_32", every, rows, 0, blocks, 64);
  if (dtype != DType::kBF16) return;
  // Products of queries and keys alone, for which Hopper GPUs have a kernel: more tiles of keys
  // than it has stages, and tiles of queries that read all keys, some and none (those of padding).
  const Sizes cross{1, 70, 330, 2, 64}, packed{2, 300, 300, 1, 64}, padded{3, 135, 270, 1, 64};
  const Sizes table{1, 130, 150, 2, 64}, tables{9, 140, 130, 1, 64}, indexed{2, 66, 101, 1, 64};
  add("products_cross", every, cross, 0, {{1, keys(cross)}});
  add("products_packed", no_later, packed, 0,
      {{1, keys(packed)}, {8, F32({1, 599})}, {9, segments(2, 300)}, {10, segments(2, 300)}});
  add("products_padded", every, padded, 0,
      {{1, keys(padded)}, {8, F32({1, 404})}, {9, segments(3, 135)}, {10, segments(3, 270)}});
  // Biases whose entries are equal where whole tiles are, before their queries and after them.
  const Sizes far{2, 150, 200, 1, 64}, far_causal{1, 260, 135, 2, 64};
  add("products_reach", every, far, 0,
      {{1, keys(far)}, {8, F32({1, 349})}, {9, segments(2, 150)}, {10, segments(2, 200)}}, 0, 20);
  add("products_reach_causal", no_later, far_causal, 0, {{1, keys(far_causal)}, {8, F32({2, 394})}},
      0, 40);
  add("products_table", no_later, table, 0,
      {{1, keys(table)}, {7, F32({2, 130, 150})}, {8, F32({2, 279})}});
  // More examples than the kernel of dtable has stages, some with nothing in a tile.
  add("products_tables", every, tables, 0,
      {{1, keys(tables)},
       {7, F32({1, 140, 130})},
       {8, F32({1, 269})},
       {9, segments(9, 140)},
       {10, segments(9, 130)}});
  add("products_indexed", every, indexed, 0,
      {{1, keys(indexed)},
       {7, F32({1, 37, 37})},
       {9, segments(2, 66)},
       {10, segments(2, 101)},
       {11, I32({2, 66})},
       {12, I32({2, 101})}});
  // Products of u and positions, which are theirs, too: positions of each head and of all, more of
  // them than keys, and several examples in a part of the batch.
  const Sizes dense{2, 150, 270, 1, 64}, decoder{3, 114, 114, 4, 64}, tabled{2, 70, 130, 2, 64};
  add("products_dense", every, dense, 64,
      {{4, F32({64, 280})}, {8, F32({1, 419})}, {9, segments(2, 150)}, {10, segments(2, 270)}});
  add("products_dense_heads", no_later, decoder, 64,
      {{4, F32({4, 64, 120})}, {9, segments(3, 114)}, {10, segments(3, 114)}});
  add("products_dense_table", every, tabled, 64, {{4, F32({64, 130})}, {7, F32({2, 70, 130})}});
  // Both together, and more examples in a part of the batch than the kernels of the backward pass
  // have stages for.
  const Sizes both{5, 140, 150, 1, 64};
  add("products_both", every, both, 64,
      {{1, keys(both)},
       {4, F32({64, 160})},
       {8, F32({1, 289})},
       {9, segments(5, 140)},
       {10, segments(5, 150)}},
      0, 50);
  add("products_both_table", no_later, tabled, 64,
      {{1, keys(tabled)}, {4, F32({2, 64, 140})}, {7, F32({2, 70, 130})}});
  // More queries than one pass of the backward pass can have.
  const Sizes longer{3, 520, 70, 1, 64};
  add("products_longer", no_later, longer, 0,
      {{1, keys(longer)}, {7, F32({1, 520, 70})}, {8, F32({1, 589})}}, 0, 50);
  add("products_longer_dense", every, longer, 64,
      {{4, F32({64, 70})}, {9, segments(3, 520)}, {10, segments(3, 70)}});
  AddFactors(cases);
}

Cases MakeCases() {
  Cases cases;
  for (DType dtype : kActivationTypes) {
    for (int64_t width : {67, 1030}) AddActivations(cases, dtype, width);
    AddProducts(cases, dtype);
    AddTranspositions(cases, dtype);
    AddAttention(cases, dtype);
    AddSharedAttention(cases, dtype);
    AddFeatureAttention(cases, dtype);
  }
  AddMasks(cases);
  AddWidths(cases);
  AddTables(cases);
  AddSums(cases);
  AddParameters(cases);
  return cases;
}

}  // namespace

const std::vector<LargeCase>& LargeCases() {
  static const Cases cases = MakeCases();
  return cases;
}

OpCase FindAnyCase(const SweepCase& sweep) {
  for (const LargeCase& large : LargeCases()) {
    if (large.op == sweep.op && large.test.name == sweep.name) return large.test;
  }
  return FindCase(sweep);
}

bool Decodes(const std::string& op, const OpCase& test) {
  static const std::map<std::string, size_t> query_start = {{"attention", attention::kQueryStart},
                                                            {"relative_bias", 1}};
  const auto start = query_start.find(op);
  return start != query_start.end() && test.inputs[start->second].present();
}

}  // namespace syntra
