// SPDX-License-Identifier: Apache-2.0
// attention and its gradient in double precision: plain loops that follow the definition.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/ops/attention.h"

namespace syntra::attention {
namespace {

// The elements of every operand by (example, head, query, key).
class Scores {
 public:
  Scores(const Attributes& attributes, std::span<const ReferenceTensor> inputs) : in_(inputs) {
    std::vector<TensorType> types;
    for (const ReferenceTensor& tensor : inputs) types.push_back(tensor.type);
    z = DimensionsOf(attributes, types);
    if (inputs.size() == kInputCount && inputs[kQueryStart].present()) {
      start_ = inputs[kQueryStart].integers[0];
    }
  }

  bool Has(Input input) const { return in_[input].present(); }

  bool Allowed(int64_t b, int64_t h, int64_t i, int64_t j) const {
    if (z.block > 0 && !ReadsBlock(h, i / z.block, j / z.block)) return false;
    if (!z.pattern.Allows(i + start_, j) && !InPrefix(b, i, j)) return false;
    if (!Has(kQuerySegments)) return true;
    const int32_t segment = in_[kQuerySegments].integers[b * z.queries + i];
    return segment != 0 && segment == in_[kKeySegments].integers[b * z.keys + j];
  }

  // Whether j is in the prefix of query i.
  bool InPrefix(int64_t b, int64_t i, int64_t j) const {
    return Has(kPrefixEnds) && j < in_[kPrefixEnds].integers[b * z.queries + i];
  }

  bool ReadsBlock(int64_t h, int64_t query_block, int64_t key_block) const {
    const int64_t head = z.block_heads == 1 ? 0 : h;
    const auto read = in_[kKeyBlocks].integers.subspan(
        (head * z.QueryBlocks() + query_block) * z.blocks_read, z.blocks_read);
    return std::ranges::find(read, key_block) != read.end();
  }

  int64_t QueryRow(int64_t b, int64_t h, int64_t i, int64_t width) const {
    return ((b * z.queries + i) * z.heads + h) * width;
  }
  int64_t KeyRow(int64_t b, int64_t h, int64_t j) const {
    return ((b * z.keys + j) * z.heads + h) * z.head_size;
  }
  int64_t QueryPosition(int64_t b, int64_t i) const {
    return Has(kQueryPositions) ? in_[kQueryPositions].integers[b * z.queries + i] : i + start_;
  }
  int64_t KeyPosition(int64_t b, int64_t j) const {
    return Has(kKeyPositions) ? in_[kKeyPositions].integers[b * z.keys + j] : j;
  }
  // Feature f of key position n.
  int64_t PositionElement(int64_t h, int64_t f, int64_t n) const {
    return ((z.positions_per_head ? h : 0) * z.features + f) * z.position_extent + n;
  }
  int64_t TableElement(int64_t h, int64_t m, int64_t n) const {
    return ((z.table_heads == 1 ? 0 : h) * z.table_queries + (z.table_queries == 1 ? 0 : m)) *
               z.table_keys +
           n;
  }
  // Beyond bias_reach that at it, so that only its gradient is not zero.
  int64_t BiasElement(int64_t h, int64_t i, int64_t j) const {
    const int64_t reach = z.bias_reach > 0 ? z.bias_reach : z.queries + z.keys;
    return h * (z.queries + z.keys - 1) + std::clamp(j - i, -reach, reach) + z.queries - 1;
  }

  double At(int64_t b, int64_t h, int64_t i, int64_t j) const {
    const int64_t m = QueryPosition(b, i), n = KeyPosition(b, j);
    double score = 0.0;
    if (Has(kQuery)) {
      const int64_t q = QueryRow(b, h, i, z.head_size), k = KeyRow(b, h, j);
      for (int64_t d = 0; d < z.head_size; ++d) {
        score += in_[kQuery].numbers[q + d] * in_[kKey].numbers[k + d];
      }
    }
    if (Has(kU)) {
      const int64_t u = QueryRow(b, h, i, z.features);
      for (int64_t f = 0; f < z.features; ++f) {
        score += in_[kU].numbers[u + f] * in_[kPositions].numbers[PositionElement(h, f, n)];
      }
    }
    if (Has(kA)) {
      score += in_[kA].numbers[QueryRow(b, h, i, z.a_size) + n % z.a_size] *
               in_[kB].numbers[QueryRow(b, h, i, z.b_size) + n / z.a_size];
    }
    if (Has(kTable)) score += in_[kTable].numbers[TableElement(h, m, n)];
    if (Has(kBias)) score += in_[kBias].numbers[BiasElement(h, i, j)];
    return score;
  }

  Dimensions z;

 private:
  std::span<const ReferenceTensor> in_;
  int64_t start_ = 0;
};

// Adds the contribution of ds, the gradient of one score, to the gradient of each operand.
void Spread(const Scores& scores, std::span<const ReferenceTensor> in,
            std::span<const ReferenceTensor> out, int64_t b, int64_t h, int64_t i, int64_t j,
            double ds) {
  const Dimensions& z = scores.z;
  const int64_t m = scores.QueryPosition(b, i), n = scores.KeyPosition(b, j);
  const auto add = [&](int g, int64_t element, double x) {
    if (out[g].present()) out[g].numbers[element] += x;
  };
  if (scores.Has(kQuery)) {
    const int64_t q = scores.QueryRow(b, h, i, z.head_size), k = scores.KeyRow(b, h, j);
    for (int64_t d = 0; d < z.head_size; ++d) {
      add(kQuery, q + d, ds * in[kKey].numbers[k + d]);
      add(kKey, k + d, ds * in[kQuery].numbers[q + d]);
    }
  }
  if (scores.Has(kU)) {
    const int64_t u = scores.QueryRow(b, h, i, z.features);
    for (int64_t f = 0; f < z.features; ++f) {
      const int64_t p = scores.PositionElement(h, f, n);
      add(kU, u + f, ds * in[kPositions].numbers[p]);
      add(kPositions, p, ds * in[kU].numbers[u + f]);
    }
  }
  if (scores.Has(kA)) {
    const int64_t a = scores.QueryRow(b, h, i, z.a_size) + n % z.a_size;
    const int64_t c = scores.QueryRow(b, h, i, z.b_size) + n / z.a_size;
    add(kA, a, ds * in[kB].numbers[c]);
    add(kB, c, ds * in[kA].numbers[a]);
  }
  if (scores.Has(kTable)) add(kTable, scores.TableElement(h, m, n), ds);
  if (scores.Has(kBias)) add(kBias, scores.BiasElement(h, i, j), ds);
}

// Calls body(b, h, i) for every row of scores.
template <typename Body>
void ForEachRow(const Dimensions& z, const Body& body) {
  for (int64_t b = 0; b < z.batch; ++b) {
    for (int64_t h = 0; h < z.heads; ++h) {
      for (int64_t i = 0; i < z.queries; ++i) body(b, h, i);
    }
  }
}

// The softmax of a row of scores, 0 where nothing is allowed. Returns its log_sum_exp.
double Softmax(const Scores& scores, int64_t b, int64_t h, int64_t i, std::span<double> row) {
  double maximum = -std::numeric_limits<double>::infinity(), sum = 0.0;
  for (int64_t j = 0; j < scores.z.keys; ++j) {
    row[j] = scores.Allowed(b, h, i, j) ? scores.At(b, h, i, j)
                                        : -std::numeric_limits<double>::infinity();
    maximum = std::max(maximum, row[j]);
  }
  for (double& weight : row) {
    weight = std::isinf(weight) && weight < 0 ? 0.0 : std::exp(weight - maximum);
    sum += weight;
  }
  for (double& weight : row) {
    if (sum > 0) weight /= sum;
  }
  return maximum + std::log(sum);
}

}  // namespace

void Reference(const OpCall& call, std::span<const ReferenceTensor> inputs,
               std::span<const ReferenceTensor> outputs) {
  const Scores scores(call.attributes, inputs);
  const Dimensions& z = scores.z;
  std::vector<double> weights(z.keys);
  ForEachRow(z, [&](int64_t b, int64_t h, int64_t i) {
    const double log_sum_exp = Softmax(scores, b, h, i, weights);
    if (outputs[kLogSumExp].present()) {
      outputs[kLogSumExp].numbers[(b * z.heads + h) * z.queries + i] = log_sum_exp;
    }
    if (!outputs[kY].present()) return;
    const int64_t y = scores.QueryRow(b, h, i, z.head_size);
    for (int64_t d = 0; d < z.head_size; ++d) outputs[kY].numbers[y + d] = 0.0;
    for (int64_t j = 0; j < z.keys; ++j) {
      if (!scores.Allowed(b, h, i, j)) continue;
      const int64_t v = scores.KeyRow(b, h, j);
      for (int64_t d = 0; d < z.head_size; ++d) {
        outputs[kY].numbers[y + d] += weights[j] * inputs[kValue].numbers[v + d];
      }
    }
  });
}

void ReferenceWeights(const OpCall& call, std::span<const ReferenceTensor> inputs,
                      std::span<const ReferenceTensor> outputs) {
  const Scores scores(call.attributes, inputs);
  const Dimensions& z = scores.z;
  ForEachRow(z, [&](int64_t b, int64_t h, int64_t i) {
    const int64_t row = (b * z.heads + h) * z.queries + i;
    Softmax(scores, b, h, i, outputs[0].numbers.subspan(row * z.keys, z.keys));
  });
}

void ReferenceGradient(const OpCall& call, std::span<const ReferenceTensor> inputs,
                       std::span<const ReferenceTensor> outputs) {
  const Scores scores(call.attributes, inputs);
  const Dimensions& z = scores.z;
  for (const ReferenceTensor& output : outputs) {
    std::fill(output.numbers.begin(), output.numbers.end(), 0.0);
  }
  const std::span<const double> values = inputs[kValue].numbers, dys = inputs[kGivenDY].numbers;
  std::vector<double> p(z.keys), dp(z.keys);
  ForEachRow(z, [&](int64_t b, int64_t h, int64_t i) {
    const double log_sum_exp = inputs[kGivenLogSumExp].numbers[(b * z.heads + h) * z.queries + i];
    const int64_t y = scores.QueryRow(b, h, i, z.head_size);
    // Divides by their sum, since rounding of a log_sum_exp stored in f32 scales the whole row.
    double sum = 0.0;
    for (int64_t j = 0; j < z.keys; ++j) {
      if (scores.Allowed(b, h, i, j)) sum += p[j] = std::exp(scores.At(b, h, i, j) - log_sum_exp);
    }
    double mean = 0.0;  // sum_j dP_ij P_ij
    for (int64_t j = 0; j < z.keys; ++j) {
      if (!scores.Allowed(b, h, i, j)) continue;
      p[j] /= sum;
      dp[j] = 0.0;
      const int64_t v = scores.KeyRow(b, h, j);
      for (int64_t d = 0; d < z.head_size; ++d) {
        dp[j] += dys[y + d] * values[v + d];
        if (outputs[kValue].present()) outputs[kValue].numbers[v + d] += p[j] * dys[y + d];
      }
      mean += p[j] * dp[j];
    }
    for (int64_t j = 0; j < z.keys; ++j) {
      if (scores.Allowed(b, h, i, j))
        Spread(scores, inputs, outputs, b, h, i, j, p[j] * (dp[j] - mean));
    }
  });
}

}  // namespace syntra::attention
