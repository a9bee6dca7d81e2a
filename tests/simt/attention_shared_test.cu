// SPDX-License-Identifier: Apache-2.0
// The shared class of attention: which examples its products compute, and which it leaves to the
// kernels that compute scores for each example. The results are the same, so the sweep over kernels
// does not test this.
#include "kernels/cuda/attention/shared.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/buffer.h"
#include "tests/kernels/case_data.h"

namespace syntra {
namespace {

using namespace attention;

constexpr int64_t kQueries = 10, kKeys = 12, kHeads = 2, kWidth = 16;
// The examples: a single segment; one that ends in padding; two segments; only padding; one whose
// padding hides the key with by far the largest score; keys in another segment than the queries.
enum Example { kWhole, kPadded, kPacked, kEmpty, kHidden, kForeign, kBatch };

int32_t SegmentAt(int64_t example, int64_t row, bool query) {
  switch (example) {
    case kWhole:
      return 3;
    case kPadded:
      return row < (query ? 7 : 11) ? 1 : 0;
    case kPacked:
      return row < 5 ? 1 : 2;
    case kEmpty:
      return 0;
    case kHidden:
      return query || row < 9 ? 1 : 0;
    default:
      return query ? 1 : 2;
  }
}

// A call of an op in f32, whose kernel and reference get the same operands.
struct Problem {
  const Op& op;
  OpCall call;
  std::vector<CaseTensor> inputs, outputs;

  Problem(const char* name, std::vector<TensorType> types) : op(GetOp(name)) {
    const auto fill = [](int input, std::span<int32_t> values) {
      const bool query = input == kQuerySegments;
      const int64_t rows = query ? kQueries : kKeys;
      for (int64_t e = 0; e < std::ssize(values); ++e) {
        values[e] = SegmentAt(e / rows, e % rows, query);
      }
    };
    const OpCase test{name, AttributesOf(kHeads, {}), std::move(types), fill};
    call = CaseCall(op, test);
    inputs = CaseInputs(op, test, 5);
    outputs = CaseOutputs(op, test, 5);
  }

  void RunReference() {
    for (CaseTensor& input : inputs) {
      for (double& number : input.numbers) number = Round(number, DType::kF32);
    }
    op.reference(call, Views(inputs), Views(outputs));
  }

  // Runs the kernel, compares its outputs with the reference's, and returns its workspace.
  Buffer ExpectKernelAgrees() {
    const std::optional<BoundKernel> kernel = BindCudaKernel(op, call);
    SYNTRA_CHECK(kernel, "no kernel of {}", op.name);
    Buffer workspace(kernel->workspace_bytes, "workspace");
    std::vector<Buffer> memory;
    const auto pointers = [&](const std::vector<CaseTensor>& tensors) {
      std::vector<void*> result;
      for (const CaseTensor& tensor : tensors) {
        result.push_back(nullptr);
        if (!tensor.type.present()) continue;
        std::byte* to = memory.emplace_back(tensor.type.bytes(), "operand").data();
        result.back() = to;
        std::ranges::copy(tensor.integers, reinterpret_cast<int32_t*>(to));
        std::ranges::copy(tensor.numbers, reinterpret_cast<float*>(to));
      }
      return result;
    };
    const std::vector<void*> in = pointers(inputs), out = pointers(outputs);
    kernel->run({in, out, workspace.data()});
    EXPECT_EQ(simt::TakeComplaints(), "");
    for (size_t o = 0; o < outputs.size(); ++o) {
      for (size_t e = 0; e < outputs[o].numbers.size(); ++e) {
        const double want = outputs[o].numbers[e], got = static_cast<float*>(out[o])[e];
        if (want == got) continue;  // both -inf
        EXPECT_NEAR(got, want, 1e-5 * (1 + std::abs(want))) << "output " << o << ", element " << e;
      }
    }
    return workspace;
  }

  std::optional<SharedAttention> Shared() const {
    WorkspaceLayout layout;
    return SharedAttention::For(DimensionsOf(call.attributes, call.inputs), call.inputs, layout);
  }
};

std::vector<TensorType> ForwardTypes() {
  std::vector<TensorType> types(kInputCount, {DType::kNone, {}});
  types[kValue] = {DType::kF32, {kBatch, kKeys, kWidth}};
  types[kTable] = {DType::kF32, {kHeads, kQueries, kKeys}};
  types[kQuerySegments] = {DType::kI32, {kBatch, kQueries}};
  types[kKeySegments] = {DType::kI32, {kBatch, kKeys}};
  return types;
}

// The number of keys of each example that a run of the problem's kernel computed.
std::vector<int32_t> Taken(const Problem& problem, const Buffer& workspace) {
  const SharedScores<float> scores = problem.Shared()->In<float>(workspace.data());
  std::vector<int32_t> left;
  for (int32_t b = 0; b < kBatch; ++b) {
    if (scores.key_lengths[b] == kLeft) left.push_back(b);
  }
  EXPECT_EQ(left, std::vector(scores.left + 1, scores.left + 1 + scores.left[0]));
  return {scores.key_lengths, scores.key_lengths + kBatch};
}

class SharedAttentionOf : public testing::TestWithParam<std::pair<double, int32_t>> {};

TEST_P(SharedAttentionOf, TakesWhatFitsAndLeavesTheRest) {
  const auto [score, keys_of_hidden] = GetParam();
  Problem forward("attention", ForwardTypes());
  forward.inputs[kTable].numbers[3 * kKeys + 10] = score;  // query 3, key 10
  forward.RunReference();
  const std::vector<int32_t> taken = {12, 11, kLeft, 0, keys_of_hidden, kLeft};
  EXPECT_EQ(Taken(forward, forward.ExpectKernelAgrees()), taken);

  std::vector<TensorType> types = ForwardTypes();
  types.resize(kSharedInputs);
  for (const CaseTensor& output : forward.outputs) types.push_back(output.type);
  types.push_back(forward.outputs[kY].type);
  Problem backward("attention_grad", types);
  std::copy_n(forward.inputs.begin(), int{kSharedInputs}, backward.inputs.begin());
  backward.inputs[kGivenY] = forward.outputs[kY];
  backward.inputs[kGivenLogSumExp] = forward.outputs[kLogSumExp];
  backward.RunReference();
  EXPECT_EQ(Taken(backward, backward.ExpectKernelAgrees()), taken);
}

// If all but exp(-37) of a row is hidden, its sums still have full precision. exp(-57) is below
// kLeastSum.
INSTANTIATE_TEST_SUITE_P(HiddenScores, SharedAttentionOf,
                         testing::Values(std::pair(40.0, 9), std::pair(60.0, kLeft)));

// More rows than a block of FitKernel reads at once, and more keys than a warp sums at once.
TEST(SharedAttention, HasAnyNumberOfRowsAndKeys) {
  constexpr int64_t kManyQueries = 4100, kManyKeys = 260;
  std::vector<TensorType> types(kInputCount, {DType::kNone, {}});
  types[kValue] = {DType::kF32, {1, kManyKeys, kHeads * 4}};
  types[kTable] = {DType::kF32, {kHeads, kManyQueries, kManyKeys}};
  types[kBias] = {DType::kF32, {kHeads, kManyQueries + kManyKeys - 1}};
  types[kQuerySegments] = {DType::kI32, {1, kManyQueries}};
  types[kKeySegments] = {DType::kI32, {1, kManyKeys}};
  Problem forward("attention", types);
  std::ranges::fill(forward.inputs[kQuerySegments].integers, 1);
  std::ranges::fill(forward.inputs[kKeySegments].integers, 1);
  forward.inputs[kTable].numbers[kManyKeys - 2] = 100;  // exp(100) is infinite in f32
  forward.RunReference();
  const Buffer workspace = forward.ExpectKernelAgrees();
  EXPECT_EQ(forward.Shared()->In<float>(workspace.data()).key_lengths[0], kManyKeys);
}

TEST(SharedAttention, ServesItsClassAlone) {
  const auto serves = [](int input, const TensorType& type) {
    std::vector<TensorType> types = ForwardTypes();
    types[input] = type;
    if (input == kKeyPositions) types[kQueryPositions] = types[kQuerySegments];
    if (input == kQuery) types[kKey] = types[kValue];
    return Problem("attention", types).Shared().has_value();
  };
  const TensorType absent{DType::kNone, {}};
  EXPECT_TRUE(serves(kTable, absent));
  EXPECT_TRUE(serves(kBias, {DType::kF32, {kHeads, kQueries + kKeys - 1}}));
  EXPECT_TRUE(serves(kValue, {DType::kBF16, {kBatch, kKeys, kWidth}}));
  EXPECT_FALSE(serves(kQuery, {DType::kF32, {kBatch, kQueries, kWidth}}));
  EXPECT_FALSE(serves(kKeyPositions, {DType::kI32, {kBatch, kKeys}}));
  EXPECT_FALSE(serves(kQueryStart, {DType::kI32, {1}}));
  // Rows that do not begin at multiples of 16 bytes, and head sizes that no kernel supports.
  EXPECT_FALSE(serves(kValue, {DType::kBF16, {kBatch, kKeys, kHeads * 4}}));
  EXPECT_FALSE(serves(kValue, {DType::kF32, {kBatch, kKeys, kHeads * 132}}));
}

}  // namespace
}  // namespace syntra
