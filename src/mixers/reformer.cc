// SPDX-License-Identifier: Apache-2.0
// Reformer's attention by locality-sensitive hashing (Kitaev et al. 2020, section 2): queries are
// also keys, which are scaled to length 1. In each round a position reads those of its bucket among
// its chunk and the one before in the order of buckets, itself only if there is no other. Pairs
// that meet in several rounds count in each, as in the authors' code.
//
// Where chunks begin depends on all positions, and a causal layer must not see later ones. There a
// position reads as many positions before it in its bucket as a chunk has, wherever chunks begin.
#include <fmt/format.h>
#include <numeric>

#include "mixers/blocks.h"
#include "mixers/mixer.h"
#include "mixers/projections.h"
#include "nn/tensors.h"

namespace syntra {
namespace {

constexpr double kHidden = 1e9, kSelf = 1e5;  // what is subtracted from scores (section 2)
constexpr double kLengthEpsilon = 1e-6;       // of the keys' squared length

// The sum over the last axis, f32 with extent 1.
Value SumOfLast(const Scope& scope, Value x, Value factor = {}) {
  return SumTo(scope, x, scope.TypeOf(x).shape.With(-1, 1), factor);
}

// Integers in another shape.
Value ReshapeIntegers(const Scope& scope, Value x, const Shape& shape) {
  return Cast(scope, Reshape(scope, Cast(scope, x, DType::kF32), shape), DType::kI32);
}

class Reformer final : public TokenMixer {
 public:
  explicit Reformer(const ReformerConfig& config) : config_(config) {}

  MixerTraits traits() const override {
    const int64_t heads = config_.heads(), size = config_.head_size();
    return {.causal = true,
            .prefills = true,
            .packed_rows = PackedRows::kIndependent,
            .sees_order = false,
            .per_token = {
                {heads * size, {"heads", "head_size"}},
                {heads * config_.rounds() * config_.buckets(), {"heads", "rounds", "buckets"}}}};
  }

  void Validate(const FieldReport& report) const override {
    if (config_.buckets() % 2 == 0) return;
    const std::string buckets = report.Path("buckets");
    report.Add({buckets}, fmt::format("{} {} is odd, but half of them are the opposites of the "
                                      "other half; make it even",
                                      buckets, config_.buckets()));
  }

  Value Build(const Scope& scope, const MixerInput& input) const override {
    const Shape shape = scope.TypeOf(input.x).shape;
    const auto padded = [&](Value x) { return PadToMultiple(scope, x, config_.chunk_length()); };
    Value query = ProjectQuery(scope, HeadsOf(config_), input.x);
    Value value = ProjectValue(scope, HeadsOf(config_), input.x);
    Remember(scope, input, "query", query);
    Remember(scope, input, "value", value);
    query = padded(query);
    value = padded(value);
    const Value ids = Ids(scope, Buckets(scope, query), padded(AsRows(scope, input.segments)));
    if (input.state) Remember(scope, input, "ids", First(scope, IdRows(scope, ids), 1, shape[1]));
    // Segments and buckets in descending order: padding, whose number is 0, is last.
    const std::vector<Value> sorted = scope.program().Record(
        "sort_by_key", {}, {Cast(scope, AffineMap(scope, ids, -1), DType::kI32)});
    const Value order = sorted[0], rank = sorted[1];
    const Shape all = scope.TypeOf(ids).shape;
    const Value id_rows = Reshape(scope, ids, {all[0], all[1], all[2], all[3], 1});
    const Round rounds = Attend(scope, InOrder(scope, query, order), InOrder(scope, value, order),
                                Gather(scope, id_rows, order), input.causal);
    const Value mixed = Combine(
        scope, {Gather(scope, rounds.mixed, rank), Gather(scope, rounds.log_sum_exp, rank)});
    const Value narrow = Cast(scope, mixed, scope.TypeOf(input.x).dtype);
    return ProjectOutput(scope, First(scope, narrow, 1, shape[1]), shape[2]);
  }

  // Remembers what positions are hashed to, beside queries and values. A softmax over all pairs of
  // all rounds is that of each round, weighed by the rounds' sums.
  Value BuildStep(const Scope& scope, const MixerStep& step) const override {
    const Shape shape = scope.TypeOf(step.x).shape;
    const int64_t count = config_.heads(), rounds = config_.rounds();
    const Value query = ProjectQuery(scope, HeadsOf(config_), step.x);
    // The ids as in a whole sequence, which is segment 1.
    const Value own = AffineMap(scope, Buckets(scope, query), 1, config_.buckets());
    const Value ids = InHeads(scope, Remember(scope, step, "ids", IdRows(scope, own)), count);
    const Value queries = Remember(scope, step, "query", query);
    const Value values =
        Remember(scope, step, "value", ProjectValue(scope, HeadsOf(config_), step.x));

    const Value scores = BatchProduct(scope, InHeads(scope, query, count),
                                      Unit(scope, InHeads(scope, queries, count)), DType::kF32,
                                      Transposed::kRight, {0, 1});
    const Value masked =
        Add(scope, scores, StepMask(scope, step, own, Transpose(scope, ids, {0, 2, 3, 1})));
    const Value pairs = Reshape(scope, masked, {shape[0], count, 1, rounds * step.length});
    const Value parts =
        Reshape(scope, scope.One("softmax", {}, {pairs}), {shape[0], count, rounds, step.length});
    const Value weights = SumTo(scope, parts, {shape[0], count, 1, step.length});
    const Value mixed = BatchProduct(scope, weights, InHeads(scope, values, count), DType::kF32,
                                     Transposed::kNone, {1, 2});
    return ProjectOutput(scope, Cast(scope, Joined(scope, mixed), scope.TypeOf(step.x).dtype),
                         shape[2]);
  }

 private:
  // The results of positions in each round: f32 [B, H, R, T, K] and [B, H, R, T, 1].
  struct Round {
    Value mixed, log_sum_exp;
  };

  // The bucket of every position in every round, f32 [B, H, R, T].
  Value Buckets(const Scope& scope, Value query) const {
    const Shape shape = scope.TypeOf(query).shape;
    const int64_t half = config_.buckets() / 2, rounds = config_.rounds();
    const Value rotation =
        scope.Parameter("rotation", {config_.heads(), config_.head_size(), rounds * half},
                        Initializer::Normal(1), /*trainable=*/false);
    const Value rotated =
        scope.One("head_matmul", {{"heads", int64_t{config_.heads()}}}, {query, rotation});
    const Value places =
        Reshape(scope, rotated, {shape[0], shape[1], config_.heads(), rounds, half});
    const Value both = Concatenate(scope, 4, {places, AffineMap(scope, places, -1)});
    const Value largest = scope.program().Record("reduce_max", {}, {both})[1];
    return Transpose(scope, Cast(scope, largest, DType::kF32), {0, 2, 3, 1});
  }

  // Numbers that are the same for positions of one segment and bucket, 0 for padding.
  Value Ids(const Scope& scope, Value buckets, Value segments) const {
    const Shape shape = scope.TypeOf(segments).shape;
    segments = Reshape(scope, segments, {shape[0], 1, 1, shape[1]});
    const Value there = NotZero(scope, segments);
    const Value first = AffineMap(scope, segments, config_.buckets());
    return Multiply(scope, Add(scope, first, buckets), there);
  }

  // Ids [B, H, R, T] by position, [B, T, H * R].
  static Value IdRows(const Scope& scope, Value ids) {
    return Joined(scope, Transpose(scope, ids, {0, 3, 1, 2}));
  }

  // The rows of x [B, H, R, T, C] in each round's order, i32 [B, H, R, T].
  static Value Gather(const Scope& scope, Value x, Value order) {
    return GatherRows(scope, x, 3, order);
  }

  // x [B, T, H * K] in each round's order, [B, H, R, T, K].
  Value InOrder(const Scope& scope, Value x, Value order) const {
    const int64_t count = config_.heads(), width = config_.head_size(), rounds = config_.rounds();
    const Shape shape = scope.TypeOf(x).shape;
    x = Transpose(scope, InHeads(scope, x, count), {0, 2, 1, 3});
    const Value rows = ReshapeIntegers(scope, order, {shape[0], count, rounds * shape[1]});
    return Reshape(scope, GatherRows(scope, x, 2, rows),
                   {shape[0], count, rounds, shape[1], width});
  }

  // Attention in chunks of sorted positions. Queries and values [B, H, R, T, K], ids
  // [B, H, R, T, 1].
  Round Attend(const Scope& scope, Value query, Value value, Value ids, bool causal) const {
    const Shape shape = scope.TypeOf(query).shape;
    const int64_t size = config_.chunk_length(), chunks = shape[3] / size;
    const int64_t groups = shape[0] * shape[1] * shape[2];
    // For each chunk itself and the one before it, among the chunks after one of zeros.
    std::vector<int32_t> pairs;
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      pairs.push_back(static_cast<int32_t>(chunk));
      pairs.push_back(static_cast<int32_t>(chunk + 1));
    }
    const Value numbers = scope.program().Constant({2 * chunks}, std::move(pairs));
    const auto own = [&](Value x) {
      return Reshape(scope, x, {groups * chunks, size, scope.TypeOf(x).shape[4]});
    };
    const auto both = [&](Value x) {
      const int64_t columns = scope.TypeOf(x).shape[4];
      x = Pad(scope, Reshape(scope, x, {groups, chunks, size * columns}), 1, 1, 0);
      return Reshape(scope, GatherRows(scope, x, 1, numbers), {groups * chunks, 2 * size, columns});
    };
    const Value scores = Add(
        scope,
        BatchProduct(scope, own(query), both(Unit(scope, query)), DType::kF32, Transposed::kRight),
        Mask(scope, own(ids), both(ids), causal));
    const Value largest = scope.program().Record("reduce_max", {}, {scores})[0];
    const Value parts = Activation(scope, "exp", Add(scope, scores, AffineMap(scope, largest, -1)));
    const Value sum = SumOfLast(scope, parts);
    const Value mixed = Multiply(scope, BatchProduct(scope, parts, both(value), DType::kF32),
                                 Activation(scope, "reciprocal", sum));
    const Value log_sum_exp = Add(scope, largest, Activation(scope, "log", sum));
    return {Reshape(scope, mixed, shape), Reshape(scope, log_sum_exp, shape.With(-1, 1))};
  }

  // x over its length.
  static Value Unit(const Scope& scope, Value x) {
    const Value square = AffineMap(scope, SumOfLast(scope, x, x), 1, kLengthEpsilon);
    return Multiply(scope, x,
                    Activation(scope, "reciprocal", Activation(scope, "square_root", square)));
  }

  // 1 where `a` and `b`, whole numbers, are the same, else 0.
  static Value AreEqual(const Scope& scope, Value a, Value b) {
    const Value difference = Add(scope, a, AffineMap(scope, b, -1));
    return Activation(scope, "relu",
                      AffineMap(scope, Multiply(scope, difference, difference), -1, 1));
  }

  // The terms that are added to the scores of queries [G, C] and keys [G, 2 C] with these ids,
  // whole numbers: 0 where the ids are equal, at most -kHidden where they differ, and -1e5 for a
  // position and itself. Positions with the same id keep their order: a position that comes before
  // another one here also came before it in the sequence.
  Value Mask(const Scope& scope, Value queries, Value keys, bool causal) const {
    const int64_t size = config_.chunk_length();
    const Value difference =
        Add(scope, queries, AffineMap(scope, Transpose(scope, keys, {0, 2, 1}), -1));
    std::vector<float> fixed(size * 2 * size);
    for (int64_t i = 0; i < size; ++i) {
      for (int64_t j = 0; j < 2 * size; ++j) {
        const int64_t back = size + i - j;
        if (back == 0) fixed[i * 2 * size + j] = -kSelf;
        if (causal && (back < 0 || back > size)) fixed[i * 2 * size + j] = -kHidden;
      }
    }
    return Add(scope, AffineMap(scope, Multiply(scope, difference, difference), -kHidden),
               scope.program().Constant({size, 2 * size}, std::move(fixed)));
  }

  // The terms for a decode step: its ids are [B, H, R, 1], those of all positions [B, H, R, L].
  Value StepMask(const Scope& scope, const MixerStep& step, Value own, Value ids) const {
    std::vector<float> numbers(step.length);
    std::iota(numbers.begin(), numbers.end(), 0.0F);
    const Value place = scope.program().Constant({step.length}, std::move(numbers));
    const Value start = Cast(scope, step.start, DType::kF32);
    const Value is_own = AreEqual(scope, place, start);
    const Value later = IsAbove(scope, Add(scope, place, AffineMap(scope, start, -1)), 0);
    const Value same = Multiply(scope, AreEqual(scope, ids, own), AffineMap(scope, later, -1, 1));
    // How many positions of the bucket lie after each of them.
    const Value behind = scope.One(
        "cumulative_sum", {{"axis", int64_t{3}}, {"reverse", true}, {"exclusive", true}}, {same});
    const Value too_far = IsAbove(scope, behind, config_.chunk_length());
    const Value reads = Multiply(scope, same, AffineMap(scope, too_far, -1, 1));
    return Add(scope, AffineMap(scope, reads, kHidden, -kHidden), AffineMap(scope, is_own, -kSelf));
  }

  // The rounds weighed by their sums of exponentials, [B, T, H * K].
  Value Combine(const Scope& scope, const Round& rounds) const {
    const Shape shape = scope.TypeOf(rounds.mixed).shape;
    const Value last = Transpose(scope, rounds.log_sum_exp, {0, 1, 3, 4, 2});
    const Value weights = Transpose(scope, scope.One("softmax", {}, {last}), {0, 1, 4, 2, 3});
    const Value sum =
        SumTo(scope, rounds.mixed, {shape[0], shape[1], 1, shape[3], shape[4]}, weights);
    const Value by_head = Reshape(scope, sum, {shape[0], shape[1], shape[3], shape[4]});
    return Joined(scope, Transpose(scope, by_head, {0, 2, 1, 3}));
  }

  ReformerConfig config_;
};

}  // namespace

std::unique_ptr<TokenMixer> mixer_reformer(const MixerConfig& config) {
  return std::make_unique<Reformer>(config.reformer());
}

}  // namespace syntra
