// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm.h"

#include <numeric>
#include <utility>

#include "kernels/cuda/cublas.h"

namespace syntra::gpu {
namespace {

void CheckCublas(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  Fail(ExitCode::kResources, "{}: {}", call, Cublas().cublasLtGetStatusString(status));
}
#define SYNTRA_CUBLAS(call) CheckCublas(Cublas().call, #call)

// The largest workspace that the library may use: what its heuristics want for the largest
// products.
constexpr uint64_t kMostWorkspace = 32 << 20;

cublasLtHandle_t Handle() {
  static const cublasLtHandle_t handle = [] {
    cublasLtHandle_t made = nullptr;
    SYNTRA_CUBLAS(cublasLtCreate(&made));
    return made;
  }();
  return handle;
}

cudaDataType TypeOf(DType dtype) { return dtype == DType::kBF16 ? CUDA_R_16BF : CUDA_R_32F; }

// A library object that is destroyed with its owner.
template <typename Pointer, cublasStatus_t (*CublasLt::*Destroy)(Pointer)>
class Owned {
 public:
  Owned() = default;
  Owned(Owned&& other) noexcept : pointer_(std::exchange(other.pointer_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(pointer_, other.pointer_);
    return *this;
  }
  ~Owned() {
    if (pointer_ != nullptr) (Cublas().*Destroy)(pointer_);
  }
  Pointer get() const { return pointer_; }
  Pointer* address() { return &pointer_; }

 private:
  Pointer pointer_ = nullptr;
};

using Operation = Owned<cublasLtMatmulDesc_t, &CublasLt::cublasLtMatmulDescDestroy>;
using Layout = Owned<cublasLtMatrixLayout_t, &CublasLt::cublasLtMatrixLayoutDestroy>;
using Preference = Owned<cublasLtMatmulPreference_t, &CublasLt::cublasLtMatmulPreferenceDestroy>;

// A row-major operand.
struct Matrix {
  DType dtype;
  int64_t rows, columns, stride;  // elements from one row to the next
  int64_t batch_stride;           // and from one product of the batch to the next

  // The operand as the library sees it: transposed and column-major.
  Layout LayoutOf(int64_t batch) const {
    Layout layout;
    SYNTRA_CUBLAS(cublasLtMatrixLayoutCreate(layout.address(), TypeOf(dtype),
                                             static_cast<uint64_t>(columns),
                                             static_cast<uint64_t>(rows), stride));
    const auto set = [&](cublasLtMatrixLayoutAttribute_t attribute, const auto& value) {
      SYNTRA_CUBLAS(
          cublasLtMatrixLayoutSetAttribute(layout.get(), attribute, &value, sizeof(value)));
    };
    set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(batch));
    set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, batch_stride);
    return layout;
  }

  // The alignment in bytes, at most 16, of the operand of every product of the batch. Tensors are
  // aligned to 64 bytes.
  uint32_t alignment() const {
    return static_cast<uint32_t>(std::gcd<int64_t>(16, batch_stride * SizeOf(dtype)));
  }
};

Matrix MatrixOf(DType dtype, int64_t rows, int64_t columns, bool transposed, int64_t stride,
                int64_t batch_stride) {
  if (transposed) std::swap(rows, columns);
  return {dtype, rows, columns, stride > 0 ? stride : columns, batch_stride};
}

Preference PreferenceOf(const Matrix& a, const Matrix& b, const Matrix& c) {
  Preference preference;
  SYNTRA_CUBLAS(cublasLtMatmulPreferenceCreate(preference.address()));
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    SYNTRA_CUBLAS(
        cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof(value)));
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMostWorkspace);
  // A product may be split along k only if the partial sums are f32, as the ops promise.
  constexpr uint32_t kReductions =
      CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, kReductions);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, a.alignment());
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, b.alignment());
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, c.alignment());
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, c.alignment());
  return preference;
}

}  // namespace

struct Gemm::Plan {
  Operation operation;
  Layout left, right, result;
  cublasLtMatmulAlgo_t algorithm;
  size_t workspace_bytes;
  float alpha, beta;
};

Gemm::Gemm() = default;
Gemm::Gemm(Gemm&&) noexcept = default;
Gemm& Gemm::operator=(Gemm&&) noexcept = default;
Gemm::~Gemm() = default;

// The library is column-major: it computes C^T = op(B)^T op(A)^T, so its left operand is B.
Gemm::Gemm(const GemmProblem& p, const GemmBatch& batch) : plan_(std::make_unique<Plan>()) {
  const Matrix a = MatrixOf(p.ab, p.m, p.k, p.transpose_a, p.a_stride, batch.a_batch_stride);
  const Matrix b = MatrixOf(p.ab, p.k, p.n, p.transpose_b, p.b_stride, batch.b_batch_stride);
  const Matrix c = MatrixOf(p.c, p.m, p.n, false, p.c_stride, batch.c_batch_stride);
  Plan& plan = *plan_;
  plan.alpha = p.alpha;
  plan.beta = p.accumulate ? 1.0f : 0.0f;
  plan.left = b.LayoutOf(batch.count);
  plan.right = a.LayoutOf(batch.count);
  plan.result = c.LayoutOf(batch.count);
  SYNTRA_CUBLAS(cublasLtMatmulDescCreate(plan.operation.address(), CUBLAS_COMPUTE_32F, CUDA_R_32F));
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    SYNTRA_CUBLAS(
        cublasLtMatmulDescSetAttribute(plan.operation.get(), attribute, &value, sizeof(value)));
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, p.relu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_DEFAULT);
  cublasLtMatmulHeuristicResult_t found = {};
  int count = 0;
  const cublasStatus_t status = Cublas().cublasLtMatmulAlgoGetHeuristic(
      Handle(), plan.operation.get(), plan.left.get(), plan.right.get(), plan.result.get(),
      plan.result.get(), PreferenceOf(b, a, c).get(), 1, &found, &count);
  if (status != CUBLAS_STATUS_SUCCESS || count == 0) {
    Fail(ExitCode::kInternal, "cuBLASLt has no {} product {} x {} x {}: {}", NameOf(p.ab), p.m, p.n,
         p.k, Cublas().cublasLtGetStatusString(status));
  }
  plan.algorithm = found.algo;
  plan.workspace_bytes = found.workspaceSize;
}

size_t Gemm::workspace_bytes() const { return plan_->workspace_bytes; }

void Gemm::Run(const KernelArguments& call, const void* a, const void* b, void* c,
               std::byte* workspace) const {
  const Plan& plan = *plan_;
  SYNTRA_CUBLAS(cublasLtMatmul(Handle(), plan.operation.get(), &plan.alpha, b, plan.left.get(), a,
                               plan.right.get(), &plan.beta, c, plan.result.get(), c,
                               plan.result.get(), &plan.algorithm, workspace, plan.workspace_bytes,
                               static_cast<cudaStream_t>(call.stream)));
}

}  // namespace syntra::gpu
