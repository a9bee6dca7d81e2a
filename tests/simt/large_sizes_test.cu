// SPDX-License-Identifier: Apache-2.0
// Sizes that int cannot count, or that do not fit into shared memory: kernels refuse them, or leave
// them to others, before anything runs.
// Operands of more than 2^31 elements: a kernel finds its own among them.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "base/error.h"
#include "core/buffer.h"
#include "kernels/attention_call.h"
#include "kernels/bfloat16.h"
#include "kernels/cuda/matmul_hopper.h"
#include "kernels/op.h"
#include "tests/simt/simt.h"

namespace syntra {
namespace {

using namespace attention;

constexpr int64_t kTooMany = int64_t{1} << 31;

bool Binds(const char* name, const Attributes& attributes, const std::vector<TensorType>& inputs) {
  const Op& op = GetOp(name);
  OpCall call{attributes, inputs, op.infer(attributes, inputs), {}};
  call.accumulate.assign(call.outputs.size(), false);
  return BindCudaKernel(op, call).has_value();
}

std::vector<TensorType> AttentionInputs(int64_t batch, int64_t rows, int64_t heads, DType dtype) {
  std::vector<TensorType> inputs(kInputCount, {DType::kNone, {}});
  inputs[kQuery] = inputs[kKey] = inputs[kValue] = {dtype, {batch, rows, heads * 64}};
  return inputs;
}

TEST(Attention, RefusesMoreRowsThanIntCanCount) {
  const auto binds = [](int64_t batch, int64_t rows, int64_t heads) {
    return Binds("attention", AttributesOf(heads, {}),
                 AttentionInputs(batch, rows, heads, DType::kBF16));
  };
  EXPECT_TRUE(binds(64, 65536, 256));
  EXPECT_FALSE(binds(1, kTooMany / 256, 256));      // rows of all heads of an example
  EXPECT_FALSE(binds(kTooMany / 64 / 4, 256, 64));  // tiles of all examples
  EXPECT_FALSE(binds(1, 64, kTooMany / 128 / 64));  // elements of the rows of a tile
}

TEST(AttentionGrad, RefusesMoreRowsThanIntCanCount) {
  const auto binds = [](int64_t batch, int64_t rows, int64_t heads) {
    std::vector<TensorType> inputs = AttentionInputs(batch, rows, heads, DType::kBF16);
    inputs.resize(kGradientInputCount);
    inputs[kGivenY] = inputs[kGivenDY] = inputs[kValue];
    inputs[kGivenLogSumExp] = {DType::kF32, {batch, heads, rows}};
    return Binds("attention_grad", AttributesOf(heads, {}), inputs);
  };
  EXPECT_TRUE(binds(64, 65536, 256));
  EXPECT_FALSE(binds(1, kTooMany / 256, 256));
  EXPECT_FALSE(binds(kTooMany / 64 / 4, 256, 64));
}

// The most units of u, beside queries, a table and a bias, with which a call and its gradient have
// kernels; -1 if they have none at all.
int64_t MostUnits(int64_t head_size, DType dtype) {
  const auto binds = [&](int64_t units) {
    std::vector<TensorType> inputs(kInputCount, {DType::kNone, {}});
    inputs[kQuery] = inputs[kKey] = inputs[kValue] = {dtype, {2, 64, head_size}};
    inputs[kTable] = {DType::kF32, {1, 64, 64}};
    inputs[kBias] = {DType::kF32, {1, 127}};
    if (units > 0) {
      inputs[kU] = {dtype, {2, 64, units}};
      inputs[kPositions] = {DType::kF32, {units, 64}};
    }
    if (!Binds("attention", AttributesOf(1, {}), inputs)) return false;
    inputs.resize(kGradientInputCount);
    inputs[kGivenY] = inputs[kGivenDY] = inputs[kValue];
    inputs[kGivenLogSumExp] = {DType::kF32, {2, 1, 64}};
    return Binds("attention_grad", AttributesOf(1, {}), inputs);
  };
  int64_t units = -1;
  for (int64_t more = 0; binds(more); more += 64) units = more;
  return units;
}

// The table in kernels/cuda/attention/README.md.
TEST(Attention, HasRoomForSoManyUnits) {
  struct Row {
    size_t shared_bytes;
    std::vector<int64_t> most;  // heads of 64 in f32 and bf16, heads of 128 in both
  };
  const size_t before = simt::MostSharedBytes();
  for (const auto& [shared_bytes, most] :
       {Row{227 << 10, {384, 448, 256, 448}}, Row{163 << 10, {192, 256, 64, 256}},
        Row{99 << 10, {64, 128, -1, 0}}}) {
    simt::SetMostSharedBytes(shared_bytes);
    std::vector<int64_t> found;
    for (const int64_t head_size : {64, 128}) {
      for (const DType dtype : {DType::kF32, DType::kBF16}) {
        found.push_back(MostUnits(head_size, dtype));
      }
    }
    EXPECT_EQ(found, most) << shared_bytes << " bytes of shared memory";
  }
  simt::SetMostSharedBytes(before);
}

TEST(EmbeddingGrad, RefusesMorePositionsThanIntCanCount) {
  const auto binds = [](int64_t rows) {
    const std::vector<TensorType> inputs = {{DType::kI32, {rows, 1024}},
                                            {DType::kBF16, {rows, 1024, 8}}};
    return Binds("embedding_grad", {{"vocabulary", int64_t{256}}}, inputs);
  };
  EXPECT_TRUE(binds(kTooMany / 1024 / 8));
  EXPECT_FALSE(binds(kTooMany / 1024));
}

TEST(HopperMatmul, LeavesMoreRowsThanIntCanCountToTheLibrary) {
  MatmulCall call;
  call.problem = {
      .n = 256, .k = 128, .ab = DType::kBF16, .c = DType::kBF16, .epilogue = Epilogue::kRelu};
  call.problem.m = kTooMany - 1;
  EXPECT_TRUE(gpu::HopperServesMatmul(call));
  call.problem.m = kTooMany;
  EXPECT_FALSE(gpu::HopperServesMatmul(call));
}

// Memory of which only what is written takes room; the rest is zero.
class SparseMemory {
 public:
  explicit SparseMemory(size_t bytes)
      : bytes_(bytes),
        data_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    SYNTRA_CHECK(data_ != MAP_FAILED, "no address space for {} bytes", bytes);
  }
  ~SparseMemory() { munmap(data_, bytes_); }
  SparseMemory(const SparseMemory&) = delete;
  SparseMemory& operator=(const SparseMemory&) = delete;
  void* data() const { return data_; }

 private:
  size_t bytes_;
  void* data_;
};

// Not quite random numbers of different sizes.
float NumberAt(int64_t i) { return std::sin(static_cast<float>(i) * 0.7f) * 3.0f; }

Buffer Numbers(const TensorType& type) {
  Buffer buffer(type.bytes(), "operand");
  for (int64_t i = 0; i < type.shape.size(); ++i) {
    if (type.dtype == DType::kF32) reinterpret_cast<float*>(buffer.data())[i] = NumberAt(i);
    if (type.dtype == DType::kBF16) {
      reinterpret_cast<BFloat16*>(buffer.data())[i] = ToBFloat16(NumberAt(i));
    }
  }
  return buffer;
}

// y of attention with a table.
std::vector<std::byte> Attend(std::vector<TensorType> types, int64_t heads, const TensorType& table,
                              void* table_data) {
  types[kTable] = table;
  const Op& op = GetOp("attention");
  const Attributes attributes = AttributesOf(heads, {});
  OpCall call{attributes, types, op.infer(attributes, types), {false, false}};
  call.outputs[kLogSumExp] = {DType::kNone, {}};
  const std::optional<BoundKernel> kernel = BindCudaKernel(op, call);
  SYNTRA_CHECK(kernel, "attention has no kernel");
  std::vector<void*> inputs(kInputCount);
  std::vector<Buffer> memory;
  for (const int i : {kQuery, kKey, kValue}) {
    inputs[i] = memory.emplace_back(Numbers(types[i])).data();
  }
  inputs[kTable] = table_data;
  std::vector<std::byte> y(call.outputs[kY].bytes());
  void* outputs[] = {y.data(), nullptr};
  const Buffer workspace(kernel->workspace_bytes, "workspace");
  kernel->run({inputs, outputs, workspace.data()});
  EXPECT_EQ(simt::TakeComplaints(), "");
  return y;
}

// The second head's part of the table begins after 2^31 elements.
TEST(Attention, ReadsTheUpperLeftCornerOfLargeTables) {
  constexpr int64_t kRows = 70, kExtent = 46400, kHeads = 2;
  const TensorType small{DType::kF32, {kHeads, kRows, kRows}};
  const TensorType large{DType::kF32, {kHeads, kExtent, kExtent}};
  const Buffer numbers = Numbers(small);
  const SparseMemory memory(large.bytes());
  const auto* from = reinterpret_cast<const float*>(numbers.data());
  for (int64_t row = 0; row < kHeads * kRows; ++row) {
    const int64_t to = (row / kRows * kExtent + row % kRows) * kExtent;
    std::copy_n(from + row * kRows, kRows, static_cast<float*>(memory.data()) + to);
  }
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const std::vector<TensorType> types = AttentionInputs(1, kRows, kHeads, dtype);
    EXPECT_EQ(Attend(types, kHeads, large, memory.data()),
              Attend(types, kHeads, small, numbers.data()))
        << NameOf(dtype);
  }
}

}  // namespace
}  // namespace syntra
