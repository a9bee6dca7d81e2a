// SPDX-License-Identifier: Apache-2.0
// Matrix products on the host instead of cuBLASLt: sums in double, rounded once. They also fill a
// workspace, which therefore must be theirs alone.
#include "kernels/cuda/gemm.h"

#include <algorithm>
#include <cstring>

#include "kernels/bfloat16.h"
#include "kernels/bit_mask.h"
#include "tests/simt/device.h"

namespace syntra::gpu {
namespace {

simt::OtherMasks the_other_masks = simt::OtherMasks::kNone;

float ElementOf(DType dtype, const void* base, int64_t i) {
  return dtype == DType::kBF16 ? ToFloat(static_cast<const BFloat16*>(base)[i])
                               : static_cast<const float*>(base)[i];
}

void StoreElement(DType dtype, void* base, int64_t i, float value) {
  if (dtype == DType::kBF16) {
    static_cast<BFloat16*>(base)[i] = ToBFloat16(value);
  } else {
    static_cast<float*>(base)[i] = value;
  }
}

}  // namespace

// There is one algorithm.
void KeepAlgorithms(const Path&) {}

struct Gemm::Plan {
  GemmProblem problem;
  GemmBatch batch;
};

Gemm::Gemm() = default;
Gemm::Gemm(Gemm&&) noexcept = default;
Gemm& Gemm::operator=(Gemm&&) noexcept = default;
Gemm::~Gemm() = default;

Gemm::Gemm(const GemmProblem& problem, const GemmBatch& batch)
    : plan_(std::make_unique<Plan>(Plan{problem, batch})) {
  SYNTRA_CHECK(Offers(problem, batch), "{} products of {} columns", batch.count, problem.n);
}

// cuBLASLt promises an epilogue for no problem in particular. Here there is no ReLU of an odd
// width.
bool Gemm::Offers(const GemmProblem& problem, const GemmBatch& batch) {
  if (problem.epilogue == Epilogue::kRelu) return problem.n % 2 == 0;
  return !HasMask(problem.epilogue) || (problem.n % kMaskRowBits == 0 && batch.count == 1);
}

namespace {

constexpr size_t kWorkspaceBytes = 1000;

void FillWorkspace(std::byte* workspace) {
  SYNTRA_CHECK(workspace, "a product without its workspace");
  std::memset(LibraryWorkspace::In(workspace), 0xff, kWorkspaceBytes);
}

// A bit of a mask of C^T, which is column-major as all matrices of the library: the mask has a
// column of bits for each of its columns, and of a byte's bits the lowest comes first.
struct MaskBit {
  uint8_t* byte;
  int value;

  static MaskBit At(void* mask, int64_t leading_dimension, int64_t row, int64_t column,
                    simt::OtherMasks others) {
    const int64_t at = column * leading_dimension + row;
    const int value = the_other_masks == others ? 0x80 >> at % 8 : 1 << at % 8;
    return {static_cast<uint8_t*>(mask) + at / 8, value};
  }
  bool is_set() const { return (*byte & value) != 0; }
  void Set(bool on) const { *byte = static_cast<uint8_t>(on ? *byte | value : *byte & ~value); }
};

// What an epilogue makes of a sum, whose place in C^T is (row, column).
double Finish(const GemmProblem& p, double sum, int64_t row, int64_t column, void* mask) {
  if (p.epilogue == Epilogue::kNone) return sum;
  if (p.epilogue == Epilogue::kRelu) return std::max(sum, 0.0);
  const bool writes = p.epilogue == Epilogue::kReluMask;
  const MaskBit bit = MaskBit::At(mask, p.n, row, column,
                                  writes ? simt::OtherMasks::kWritten : simt::OtherMasks::kApplied);
  if (p.epilogue == Epilogue::kMask) return bit.is_set() ? sum : 0.0;
  bit.Set(sum >= 0.0);  // of a sum of 0, too, as in CUTLASS's kernels
  return std::max(sum, 0.0);
}

void MultiplyInto(const GemmProblem& p, const GemmBatch& batch, const void* a, const void* b,
                  void* c, void* mask) {
  const int64_t a_stride = p.a_stride > 0 ? p.a_stride : p.transpose_a ? p.m : p.k;
  const int64_t b_stride = p.b_stride > 0 ? p.b_stride : p.transpose_b ? p.k : p.n;
  const int64_t c_stride = p.c_stride > 0 ? p.c_stride : p.n;
  for (int64_t g = 0; g < batch.count; ++g) {
    for (int64_t i = 0; i < p.m; ++i) {
      for (int64_t j = 0; j < p.n; ++j) {
        double sum = 0.0;
        for (int64_t l = 0; l < p.k; ++l) {
          const int64_t left = p.transpose_a ? l * a_stride + i : i * a_stride + l;
          const int64_t right = p.transpose_b ? j * b_stride + l : l * b_stride + j;
          sum += static_cast<double>(ElementOf(p.ab, a, g * batch.a_batch_stride + left)) *
                 ElementOf(p.ab, b, g * batch.b_batch_stride + right);
        }
        const int64_t at = g * batch.c_batch_stride + i * c_stride + j;
        sum *= p.alpha;
        if (p.accumulate) sum += ElementOf(p.c, c, at);
        StoreElement(p.c, c, at, static_cast<float>(Finish(p, sum, j, i, mask)));
      }
    }
  }
}

}  // namespace

size_t Gemm::workspace_bytes() const { return LibraryWorkspace::Reserved(kWorkspaceBytes); }

void Gemm::Run(const KernelArguments& call, const void* a, const void* b, void* c,
               std::byte* workspace, void* mask) const {
  simt::Give(call.stream, [plan = *plan_, a, b, c, workspace, mask] {
    FillWorkspace(workspace);
    MultiplyInto(plan.problem, plan.batch, a, b, c, mask);
  });
}

}  // namespace syntra::gpu

namespace syntra::simt {

void SetOtherMasks(OtherMasks which) { gpu::the_other_masks = which; }

}  // namespace syntra::simt
