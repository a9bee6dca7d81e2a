// SPDX-License-Identifier: Apache-2.0
// Reformer's attention by locality-sensitive hashing (Kitaev et al. 2020, section 2): queries are
// also keys, which are scaled to length 1. In each round a position reads those of its bucket among
// its chunk and the one before in the order of buckets, itself only if there is no other. Pairs
// that meet in several rounds count in each, as in the authors' code.
#include <fmt/format.h>
#include <cmath>

#include "mixers/blocks.h"
#include "mixers/mixer.h"
#include "mixers/projections.h"
#include "nn/tensors.h"

namespace syntra {
namespace {

constexpr double kHidden = 1e9, kSelf = 1e5;  // what is subtracted from scores (section 2)
constexpr double kEpsilon = 1e-6;             // of the keys' squared length

// The sum over the last axis, f32 with extent 1.
Value SumOfLast(const Scope& scope, Value x, Value factor = {}) {
  Attributes::Integers shape(scope.TypeOf(x).shape.dims().begin(),
                             scope.TypeOf(x).shape.dims().end());
  shape.back() = 1;
  return SumTo(scope, x, std::move(shape), factor);
}

// Integers in another shape.
Value ReshapeIntegers(const Scope& scope, Value x, Attributes::Integers shape) {
  x = scope.One("cast", {{"dtype", "f32"}}, {x});
  return scope.One("cast", {{"dtype", "i32"}}, {Reshape(scope, x, std::move(shape))});
}

class Reformer final : public TokenMixer {
 public:
  explicit Reformer(const ReformerConfig& config) : config_(config) {}

  MixerTraits traits() const override {
    const int64_t heads = config_.heads(), size = config_.head_size();
    return {.packed_rows = PackedRows::kIndependent,
            .sees_order = false,
            .per_token = {{heads * size, {"reformer.heads", "reformer.head_size"}},
                          {heads * config_.rounds() * config_.buckets(),
                           {"reformer.heads", "reformer.rounds", "reformer.buckets"}}}};
  }

  void Validate(const FieldReport& report) const override {
    if (config_.buckets() % 2 == 0) return;
    const std::string buckets = report.Path("reformer.buckets");
    report.Add({buckets}, fmt::format("{} {} is odd, but half of them are the opposites of the "
                                      "other half; make it even",
                                      buckets, config_.buckets()));
  }

  Value Build(const Scope& scope, const MixerInput& input) const override {
    const Shape shape = scope.TypeOf(input.x).shape;
    const auto padded = [&](Value x) { return PadToMultiple(scope, x, config_.chunk_length()); };
    const Value query = padded(ProjectQuery(scope, heads(), input.x));
    const Value value = padded(ProjectValue(scope, heads(), input.x));
    const Value ids = Ids(scope, Buckets(scope, query), padded(AsRows(scope, input.segments)));
    // Segments and buckets in descending order: padding, whose number is 0, is last.
    const std::vector<Value> sorted = scope.program().Record(
        "sort_by_key", {}, {scope.One("cast", {{"dtype", "i32"}}, {AffineMap(scope, ids, -1)})});
    const Value order = sorted[0], rank = sorted[1];
    const Round rounds = Attend(scope, InOrder(scope, query, order), InOrder(scope, value, order),
                                Gather(scope, WithLast(scope, ids, 1), order));
    const Value mixed = Combine(
        scope, {Gather(scope, rounds.mixed, rank), Gather(scope, rounds.log_sum_exp, rank)});
    const Value narrow = Cast(scope, mixed, scope.TypeOf(input.x).dtype);
    return ProjectOutput(scope, First(scope, narrow, 1, shape[1]), shape[2]);
  }

 private:
  // What positions get in each round: f32 [B, H, R, T, K] and [B, H, R, T, 1].
  struct Round {
    Value mixed, log_sum_exp;
  };

  Heads heads() const { return {config_.heads(), config_.head_size(), config_.dropout()}; }

  // The bucket of every position in every round, f32 [B, H, R, T].
  Value Buckets(const Scope& scope, Value query) const {
    const Shape shape = scope.TypeOf(query).shape;
    const int64_t half = config_.buckets() / 2, rounds = config_.rounds();
    const Value rotation =
        scope.Parameter("rotation", {config_.heads(), config_.head_size(), rounds * half},
                        {"heads", "kv", "buckets"}, Initializer::Normal(1), /*trainable=*/false);
    const Value rotated =
        scope.One("head_matmul", {{"heads", int64_t{config_.heads()}}}, {query, rotation});
    const Value places =
        Reshape(scope, rotated, {shape[0], shape[1], config_.heads(), rounds, half});
    const Value both = Concatenate(scope, 4, {places, AffineMap(scope, places, -1)});
    const Value largest = scope.program().Record("reduce_max", {}, {both})[1];
    return Transpose(scope, scope.One("cast", {{"dtype", "f32"}}, {largest}), {0, 2, 3, 1});
  }

  // Numbers that are the same for positions of one segment and bucket, 0 for padding.
  Value Ids(const Scope& scope, Value buckets, Value segments) const {
    const Shape shape = scope.TypeOf(segments).shape;
    segments = Reshape(scope, segments, {shape[0], 1, 1, shape[1]});
    const Value there = NotZero(scope, segments);
    const Value first = AffineMap(scope, segments, config_.buckets());
    return Multiply(scope, Add(scope, first, buckets), there);
  }

  static Value WithLast(const Scope& scope, Value x, int64_t extent) {
    const Shape shape = scope.TypeOf(x).shape;
    Attributes::Integers dims(shape.dims().begin(), shape.dims().end());
    dims.push_back(extent);
    return Reshape(scope, x, std::move(dims));
  }

  // The rows of x [B, H, R, T, C] in each round's order, i32 [B, H, R, T].
  static Value Gather(const Scope& scope, Value x, Value order) {
    return scope.One("gather_rows", {{"axis", int64_t{3}}}, {x, order});
  }

  // x [B, T, H * K] in each round's order, [B, H, R, T, K].
  Value InOrder(const Scope& scope, Value x, Value order) const {
    const int64_t count = config_.heads(), width = config_.head_size(), rounds = config_.rounds();
    const Shape shape = scope.TypeOf(x).shape;
    x = Transpose(scope, Reshape(scope, x, {shape[0], shape[1], count, width}), {0, 2, 1, 3});
    const Value rows = ReshapeIntegers(scope, order, {shape[0], count, rounds * shape[1]});
    return Reshape(scope, scope.One("gather_rows", {{"axis", int64_t{2}}}, {x, rows}),
                   {shape[0], count, rounds, shape[1], width});
  }

  // Attention in chunks of sorted positions. Queries and values [B, H, R, T, K], ids
  // [B, H, R, T, 1].
  Round Attend(const Scope& scope, Value query, Value value, Value ids) const {
    const Shape shape = scope.TypeOf(query).shape;
    const int64_t size = config_.chunk_length(), chunks = shape[3] / size;
    const int64_t groups = shape[0] * shape[1] * shape[2];
    BlockReads before{2, {}};
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      before.blocks.push_back(static_cast<int32_t>(chunk > 0 ? chunk - 1 : chunks));
      before.blocks.push_back(static_cast<int32_t>(chunk));
    }
    const auto own = [&](Value x) {
      return Reshape(scope, x, {groups * chunks, size, scope.TypeOf(x).shape[4]});
    };
    const auto both = [&](Value x) {
      x = Reshape(scope, x, {groups, chunks, size, scope.TypeOf(x).shape[4]});
      return ReadBlocks(scope, x, before);
    };
    const Value scores = Add(
        scope,
        BatchProduct(scope, own(query), both(Unit(scope, query)), DType::kF32, Transposed::kRight),
        Mask(scope, own(ids), both(ids)));
    const Value largest = scope.program().Record("reduce_max", {}, {scores})[0];
    const Value parts = Activation(scope, "exp", Add(scope, scores, AffineMap(scope, largest, -1)));
    const Value sum = SumOfLast(scope, parts);
    const Value mixed = Multiply(scope, BatchProduct(scope, parts, both(value), DType::kF32),
                                 Activation(scope, "reciprocal", sum));
    const Value log_sum_exp = Add(scope, largest, Activation(scope, "log", sum));
    return {Reshape(scope, mixed, {shape[0], shape[1], shape[2], shape[3], shape[4]}),
            Reshape(scope, log_sum_exp, {shape[0], shape[1], shape[2], shape[3], 1})};
  }

  // x over its length.
  static Value Unit(const Scope& scope, Value x) {
    const Value square = AffineMap(scope, SumOfLast(scope, x, x), 1, kEpsilon);
    return Multiply(scope, x,
                    Activation(scope, "reciprocal", Activation(scope, "square_root", square)));
  }

  // What is added to the scores of queries [G, C] and keys [G, 2 C] with these ids: 0 where they
  // are the same, but -1e5 for a position and itself.
  Value Mask(const Scope& scope, Value queries, Value keys) const {
    const int64_t size = config_.chunk_length();
    keys = Transpose(scope, keys, {0, 2, 1});
    const Value difference = Add(scope, queries, AffineMap(scope, keys, -1));
    const Value same =
        Activation(scope, "relu", AffineMap(scope, Multiply(scope, difference, difference), -1, 1));
    std::vector<float> self(size * 2 * size);
    for (int64_t i = 0; i < size; ++i) self[i * 2 * size + size + i] = -kSelf;
    return Add(scope, AffineMap(scope, same, kHidden, -kHidden),
               scope.program().Constant({size, 2 * size}, std::move(self)));
  }

  // The rounds weighed by their sums of exponentials, [B, T, H * K].
  Value Combine(const Scope& scope, const Round& rounds) const {
    const Shape shape = scope.TypeOf(rounds.mixed).shape;
    const Value last = Transpose(scope, rounds.log_sum_exp, {0, 1, 3, 4, 2});
    const Value weights = Transpose(scope, scope.One("softmax", {}, {last}), {0, 1, 4, 2, 3});
    const Value sum =
        SumTo(scope, rounds.mixed, {shape[0], shape[1], 1, shape[3], shape[4]}, weights);
    const Value by_head = Reshape(scope, sum, {shape[0], shape[1], shape[3], shape[4]});
    return Reshape(scope, Transpose(scope, by_head, {0, 2, 1, 3}),
                   {shape[0], shape[3], shape[1] * shape[4]});
  }

  ReformerConfig config_;
};

}  // namespace

std::unique_ptr<TokenMixer> mixer_reformer(const MixerConfig& config) {
  return std::make_unique<Reformer>(config.reformer());
}

}  // namespace syntra
