// SPDX-License-Identifier: Apache-2.0
// Matrix products on the host instead of cuBLASLt: sums in double, rounded once. They also fill a
// workspace, which therefore must be theirs alone.
#include "kernels/cuda/gemm.h"

#include <cstring>

#include "kernels/bfloat16.h"
#include "tests/simt/device.h"

namespace syntra::gpu {
namespace {

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
  SYNTRA_CHECK(problem.epilogue == Epilogue::kNone, "a product of the library with an epilogue");
}

namespace {

constexpr size_t kWorkspaceBytes = 1000;

void FillWorkspace(std::byte* workspace) {
  SYNTRA_CHECK(workspace, "a product without its workspace");
  std::memset(LibraryWorkspace::In(workspace), 0xff, kWorkspaceBytes);
}

void MultiplyInto(const GemmProblem& p, const GemmBatch& batch, const void* a, const void* b,
                  void* c) {
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
        StoreElement(p.c, c, at, static_cast<float>(sum));
      }
    }
  }
}

}  // namespace

size_t Gemm::workspace_bytes() const { return LibraryWorkspace::Reserved(kWorkspaceBytes); }

void Gemm::Run(const KernelArguments& call, const void* a, const void* b, void* c,
               std::byte* workspace) const {
  simt::Give(call.stream, [plan = *plan_, a, b, c, workspace] {
    FillWorkspace(workspace);
    MultiplyInto(plan.problem, plan.batch, a, b, c);
  });
}

}  // namespace syntra::gpu
