// SPDX-License-Identifier: Apache-2.0
#include "mixers/chunked_attention.h"

#include <algorithm>
#include <cmath>

#include "base/divide.h"
#include "nn/tensors.h"

namespace syntra {
namespace {

// Queries, keys, values and outputs are [B, C, L, H, W], scores [B, C, H, L, L], sums
// [B, C, H, F, K].

// k v^T, in f32: these sums run over whole sequences.
Value Sums(const Scope& scope, Value key, Value value) {
  return BatchProduct(scope, key, value, DType::kF32, Transposed::kLeft, {0, 1});
}

Value Read(const Scope& scope, Value query, Value sums) {
  return BatchProduct(scope, query, sums, DType::kF32, Transposed::kNone, {0, 2});
}

// The attention of one sequence length: C chunks of L positions.
class Chunks {
 public:
  Chunks(const Scope& scope, const ChunkedAttention& attention, int64_t length)
      : scope_(scope),
        attention_(attention),
        length_(length),
        chunk_(IsOneSum() ? length : std::min(length, attention.chunk_length)),
        count_(DivideUp(length, chunk_)) {}

  Value Attend(const ChunkedOperands& operands) const {
    const Value query = Split(operands.query), key = Split(operands.key),
                value = Split(operands.value);
    if (IsOneSum()) return Join(Read(scope_, query, Sums(scope_, key, value)));
    const Value scores = Multiply(
        scope_,
        BatchProduct(scope_, query, key, scope_.TypeOf(query).dtype, Transposed::kRight, {0, 1}),
        Inside());
    Value y = BatchProduct(scope_, scores, value, DType::kF32, Transposed::kNone, {1, 2});
    if (count_ > 1) {
      y = Add(scope_, y, FromOthers(query, key, value, false));
      if (!attention_.causal) y = Add(scope_, y, FromOthers(query, key, value, true));
    }
    return Join(y);
  }

 private:
  // Every query reads the same sum over all keys.
  bool IsOneSum() const { return !attention_.causal && attention_.decay.empty(); }

  // The number of different decays: one for each head, or one for all.
  int64_t decays() const { return attention_.decay.empty() ? 1 : attention_.heads; }

  // x [B, T, H * W] as [B, C, L, H, W], zeros after the last position.
  Value Split(Value x) const {
    const Shape shape = scope_.TypeOf(x).shape;
    const int64_t heads = attention_.heads;
    x = Pad(scope_, x, 1, 0, count_ * chunk_ - length_);
    return Reshape(scope_, x, {shape[0], count_, chunk_, heads, shape[2] / heads});
  }

  Value Join(Value y) const {
    const Shape shape = scope_.TypeOf(y).shape;
    y = Reshape(scope_, y, {shape[0], count_ * chunk_, shape[3] * shape[4]});
    return First(scope_, y, 1, length_);
  }

  // decay^power, 0 if the power is negative.
  float Decay(int64_t head, int64_t power) const {
    const double decay = attention_.decay.empty() ? 1.0 : attention_.decay[head];
    return power < 0 ? 0.0F : static_cast<float>(std::pow(decay, static_cast<double>(power)));
  }

  // A constant [H or 1, size, size] of decay^power(row, column).
  template <typename Power>
  Value Decays(int64_t size, const Power& power) const {
    std::vector<float> weights;
    for (int64_t head = 0; head < decays(); ++head) {
      for (int64_t i = 0; i < size; ++i) {
        for (int64_t j = 0; j < size; ++j) weights.push_back(Decay(head, power(i, j)));
      }
    }
    return scope_.program().Constant({decays(), size, size}, std::move(weights));
  }

  // The same for each position of a chunk, [L, H or 1, 1].
  template <typename Power>
  Value PositionDecays(const Power& power) const {
    std::vector<float> weights;
    for (int64_t i = 0; i < chunk_; ++i) {
      for (int64_t head = 0; head < decays(); ++head) weights.push_back(Decay(head, power(i)));
    }
    return scope_.program().Constant({chunk_, decays(), 1}, std::move(weights));
  }

  // The weights of a chunk's positions for each other.
  Value Inside() const {
    return Decays(
        chunk_, [&](int64_t i, int64_t j) { return attention_.causal ? i - j : std::abs(i - j); });
  }

  // The sum over the earlier chunks, or over the later ones. The way from a key to a query has
  // three parts: out of the key's chunk, over the chunks between, and into the query's chunk.
  Value FromOthers(Value query, Value key, Value value, bool later) const {
    const Value out = PositionDecays([&](int64_t j) { return later ? j : chunk_ - 1 - j; });
    const Value in = PositionDecays([&](int64_t i) { return later ? chunk_ - i : i + 1; });
    const Value sums = Sums(scope_, Multiply(scope_, key, out), value);
    return Read(scope_, Multiply(scope_, query, in), Carried(sums, later));
  }

  // For each chunk the sum over the chunks before it, or after it.
  Value Carried(Value sums, bool later) const {
    if (attention_.decay.empty()) {
      return scope_.One("cumulative_sum",
                        {{"axis", int64_t{1}}, {"reverse", later}, {"exclusive", true}}, {sums});
    }
    const Shape shape = scope_.TypeOf(sums).shape;
    const Value map = Decays(count_, [&](int64_t to, int64_t from) {
      return ((later ? from - to : to - from) - 1) * chunk_;
    });
    const Value flat = Reshape(scope_, sums, {shape[0], shape[1], shape[2] * shape[3] * shape[4]});
    return Reshape(scope_, scope_.One("shared_matmul", {{"transpose", false}}, {map, flat}), shape);
  }

  const Scope& scope_;
  const ChunkedAttention& attention_;
  int64_t length_, chunk_, count_;
};

// y / (epsilon + query . key_sums) for each head; key_sums f32 [B, T or 1, H * F].
Value Divided(const Scope& scope, int64_t heads, Value y, Value query, Value key_sums,
              double epsilon) {
  const Shape shape = scope.TypeOf(y).shape;
  const Value weight = SumTo(scope, InHeads(scope, query, heads), {shape[0], shape[1], heads, 1},
                             InHeads(scope, key_sums, heads));
  const Value inverse = Activation(scope, "reciprocal", AffineMap(scope, weight, 1, epsilon));
  const Value divided = Joined(scope, Multiply(scope, InHeads(scope, y, heads), inverse));
  return Cast(scope, divided, scope.TypeOf(query).dtype);
}

// The state `name`, zero at first, times the factors, plus `added`; kept for the next step.
Value Accumulate(const Scope& scope, const MixerState& state, const std::string& name, Value added,
                 Value factors) {
  const TensorType type = scope.TypeOf(added);
  const Value before = state(name, type, StateKind::kRunning);
  const Value sum = Add(scope, factors ? Multiply(scope, before, factors) : before, added);
  scope.program().RecordUpdate("store", {}, {sum}, {before});
  return sum;
}

// decay of the head of each of `rows` rows, f32 [rows, 1]; absent if there is none.
Value DecayOfRows(const Scope& scope, const ChunkedAttention& attention, int64_t rows) {
  if (attention.decay.empty()) return {};
  std::vector<float> factors(rows);
  for (int64_t i = 0; i < rows; ++i) {
    factors[i] = static_cast<float>(attention.decay[i * attention.heads / rows]);
  }
  return scope.program().Constant({rows, 1}, std::move(factors));
}

}  // namespace

Value Attend(const Scope& scope, const ChunkedAttention& attention,
             const ChunkedOperands& operands) {
  return Chunks(scope, attention, scope.TypeOf(operands.query).shape[1]).Attend(operands);
}

Value AttendStep(const Scope& scope, const ChunkedAttention& attention,
                 const ChunkedOperands& operands, const MixerState& state) {
  const int64_t heads = attention.heads;
  const Shape key = scope.TypeOf(operands.key).shape, value = scope.TypeOf(operands.value).shape;
  const int64_t batch = key[0], rows = key[2], columns = value[2] / heads;
  const auto in_heads = [&](Value x, int64_t width) {
    return Reshape(scope, x, {batch, 1, heads, width});
  };
  const Value outer =
      Sums(scope, in_heads(operands.key, rows / heads), in_heads(operands.value, columns));
  const Value sums = Accumulate(scope, state, "sums", Reshape(scope, outer, {batch, rows, columns}),
                                DecayOfRows(scope, attention, rows));
  // With a query of bf16 the product would round the sums, which may nearly cancel in it.
  const Value query = Cast(scope, in_heads(operands.query, rows / heads), DType::kF32);
  const Value y = Read(scope, query, Reshape(scope, sums, {batch, heads, rows / heads, columns}));
  return Reshape(scope, y, {batch, 1, value[2]});
}

Value AttendNormalised(const Scope& scope, const ChunkedAttention& attention,
                       const ChunkedOperands& operands, double epsilon) {
  const Value key = Cast(scope, operands.key, DType::kF32);
  const Shape shape = scope.TypeOf(key).shape;
  const Value sums =
      attention.causal
          ? scope.One("cumulative_sum",
                      {{"axis", int64_t{1}}, {"reverse", false}, {"exclusive", false}}, {key})
          : SumTo(scope, key, {shape[0], 1, shape[2]});
  return Divided(scope, attention.heads, Attend(scope, attention, operands), operands.query, sums,
                 epsilon);
}

Value AttendNormalisedStep(const Scope& scope, const ChunkedAttention& attention,
                           const ChunkedOperands& operands, double epsilon,
                           const MixerState& state) {
  const Value sums =
      Accumulate(scope, state, "key_sums", Cast(scope, operands.key, DType::kF32), {});
  return Divided(scope, attention.heads, AttendStep(scope, attention, operands, state),
                 operands.query, sums, epsilon);
}

}  // namespace syntra
