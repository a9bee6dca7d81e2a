// SPDX-License-Identifier: Apache-2.0
// T5's relative position bias (Raffel et al. 2020, section 2.1), one value for each difference of
// key j and query i: table [H, buckets] -> [H, T + S - 1] f32,
//   bias[h, j - i + T - 1] = table[h, bucket(j - (i + query_start))].
// {queries T, keys S, bidirectional, max_distance}; the buckets are those of
// math/relative_bucket.h. Backward: dtable[h, b] = sum of d[h, k] over the differences in bucket b.
#include "kernels/math/relative_bucket.h"
#include "kernels/ops/shapes.h"

namespace syntra {
namespace {

// Throws if there cannot be as many.
T5Buckets BucketsOf(const Attributes& attributes, int64_t count) {
  return {count, attributes.Flag("bidirectional"), attributes.Int("max_distance")};
}

std::vector<TensorType> Infer(const Attributes& attributes, std::span<const TensorType> inputs) {
  CheckOperands("relative_bias", inputs,
                {{"table", kParameter, 2}, {"query_start", kInteger, 1, true}});
  CheckShape("relative_bias", "query_start", inputs[1], {1});
  BucketsOf(attributes, inputs[0].shape[1]);
  const int64_t queries = attributes.Int("queries"), keys = attributes.Int("keys");
  SYNTRA_CHECK(queries >= 1 && keys >= 1, "relative_bias of {} queries and {} keys", queries, keys);
  return {F32({inputs[0].shape[0], queries + keys - 1})};
}

void Reference(const OpCall& call, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  const int64_t heads = inputs[0].dim(0), buckets = inputs[0].dim(1);
  const int64_t differences = outputs[0].dim(1), queries = call.attributes.Int("queries");
  const T5Buckets bucket_of = BucketsOf(call.attributes, buckets);
  const int64_t start = inputs[1].present() ? inputs[1].integers[0] : 0;
  for (int64_t h = 0; h < heads; ++h) {
    for (int64_t k = 0; k < differences; ++k) {
      outputs[0].numbers[h * differences + k] =
          inputs[0].numbers[h * buckets + bucket_of(k - (queries - 1) - start)];
    }
  }
}

void Gradient(GradientRule& rule) {
  SYNTRA_CHECK(!rule.input(1), "relative_bias of incremental decoding is not differentiated");
  const Attributes& of = rule.attributes();
  rule.Contribute("relative_bias_grad",
                  {{"buckets", rule.recorder().TypeOf(rule.input(0)).shape[1]},
                   {"queries", of.Int("queries")},
                   {"bidirectional", of.Flag("bidirectional")},
                   {"max_distance", of.Int("max_distance")}},
                  {rule.output_gradient(0)}, {0});
}

std::vector<OpCase> Cases() {
  const auto with = [](int64_t queries, int64_t keys, bool bidirectional, int64_t max_distance) {
    return Attributes{{"queries", queries},
                      {"keys", keys},
                      {"bidirectional", bidirectional},
                      {"max_distance", max_distance}};
  };
  return {{"bidirectional", with(67, 67, true, 128), {F32({3, 32}), None()}, {}},
          {"causal", with(40, 40, false, 32), {F32({2, 16}), None()}, {}},
          {"rectangular", with(7, 150, true, 128), {F32({2, 32}), None()}, {}},
          {"step", with(1, 19, false, 128), {F32({2, 32}), I32({1})}, FillBetween(0, 18)}};
}

std::vector<TensorType> GradInfer(const Attributes& attributes,
                                  std::span<const TensorType> inputs) {
  CheckOperands("relative_bias_grad", inputs, {{"d", kParameter, 2}});
  const Shape& d = inputs[0].shape;
  const int64_t buckets = attributes.Int("buckets"), queries = attributes.Int("queries");
  BucketsOf(attributes, buckets);
  SYNTRA_CHECK(queries >= 1 && queries <= d[1], "relative_bias_grad: d {} of {} queries",
               ToString(d), queries);
  return {F32({d[0], buckets})};
}

void GradReference(const OpCall& call, std::span<const ReferenceTensor> inputs,
                   std::span<const ReferenceTensor> outputs) {
  const int64_t heads = inputs[0].dim(0), differences = inputs[0].dim(1);
  const int64_t buckets = outputs[0].dim(1), queries = call.attributes.Int("queries");
  const T5Buckets bucket_of = BucketsOf(call.attributes, buckets);
  for (int64_t h = 0; h < heads; ++h) {
    for (int64_t k = 0; k < differences; ++k) {
      outputs[0].numbers[h * buckets + bucket_of(k - (queries - 1))] +=
          inputs[0].numbers[h * differences + k];
    }
  }
}

std::vector<OpCase> GradCases() {
  const auto with = [](int64_t buckets, int64_t queries, bool bidirectional, int64_t max_distance) {
    return Attributes{{"buckets", buckets},
                      {"queries", queries},
                      {"bidirectional", bidirectional},
                      {"max_distance", max_distance}};
  };
  return {{"bidirectional", with(32, 67, true, 128), {F32({3, 133})}, {}},
          {"causal", with(16, 40, false, 32), {F32({2, 79})}, {}},
          {"rectangular", with(32, 7, true, 128), {F32({2, 156})}, {}}};
}

}  // namespace

Op op_relative_bias() {
  return {.infer = Infer, .reference = Reference, .gradient = Gradient, .cases = Cases};
}

Op op_relative_bias_grad() {
  return {.infer = GradInfer, .reference = GradReference, .cases = GradCases};
}

}  // namespace syntra
