// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm.h"

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/algorithms.h"
#include "kernels/cuda/counts.h"
#include "kernels/cuda/cublas.h"
#include "kernels/cuda/kernel_trial.h"

namespace syntra::gpu {
namespace {

void CheckCublas(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const bool lacks_something = status == CUBLAS_STATUS_ALLOC_FAILED ||
                               status == CUBLAS_STATUS_NOT_INITIALIZED ||
                               status == CUBLAS_STATUS_ARCH_MISMATCH;
  Fail(lacks_something ? ExitCode::kResources : ExitCode::kInternal, "{}: {}", call,
       Cublas().cublasLtGetStatusString(status));
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
using Candidate = cublasLtMatmulHeuristicResult_t;
using Preference = Owned<cublasLtMatmulPreference_t, &CublasLt::cublasLtMatmulPreferenceDestroy>;

// A row-major operand.
struct Matrix {
  DType dtype;
  int64_t rows, columns, stride;  // elements from one row to the next
  int64_t batch_stride;           // and from one product of the batch to the next
  int64_t begin_step;             // GemmBatch

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

  // The alignment in bytes, at most 16, of every row of every product of the batch, wherever the
  // operand begins.
  uint32_t alignment() const {
    const int64_t step = std::gcd(stride, std::gcd(batch_stride, begin_step));
    return static_cast<uint32_t>(std::gcd<int64_t>(16, step * SizeOf(dtype)));
  }

  // From the first element of a batch to just past the last.
  size_t bytes(int64_t batch) const {
    return ((batch - 1) * batch_stride + (rows - 1) * stride + columns) * SizeOf(dtype);
  }

  std::string ToString() const {
    return fmt::format("{} {}x{}/{}/{}@{}", NameOf(dtype), rows, columns, stride, batch_stride,
                       alignment());
  }
};

Matrix MatrixOf(DType dtype, int64_t rows, int64_t columns, bool transposed, int64_t stride,
                int64_t batch_stride, int64_t begin_step) {
  if (transposed) std::swap(rows, columns);
  return {dtype, rows, columns, stride > 0 ? stride : columns, batch_stride, begin_step};
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

// 0 if the library does not tell.
template <typename T>
T Configured(const cublasLtMatmulAlgo_t& algorithm,
             cublasLtMatmulAlgoConfigAttributes_t attribute) {
  T value = 0;
  Cublas().cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof(value),
                                                nullptr);
  return value;
}

// All that is configured of an algorithm.
std::string Describe(const cublasLtMatmulAlgo_t& algorithm) {
  return fmt::format(
      "{} tile {} stages {} split {} reduction {} swizzle {} option {} inner {} cluster {}",
      Configured<int32_t>(algorithm, CUBLASLT_ALGO_CONFIG_ID),
      Configured<uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID),
      Configured<uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_STAGES_ID),
      Configured<int32_t>(algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM),
      Configured<uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME),
      Configured<uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING),
      Configured<uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION),
      Configured<uint16_t>(algorithm, CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID),
      Configured<uint16_t>(algorithm, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID));
}

}  // namespace

struct Gemm::Plan {
  Plan(const GemmProblem& problem, const GemmBatch& batch);

  // The library's algorithms for the problem, the one that it expects to be fastest first; none,
  // and why, if it has none.
  std::vector<Candidate> Candidates(cublasStatus_t& status) const;
  // How long each takes; nothing where operands to time them on do not fit into memory.
  std::vector<double> SecondsOf(const std::vector<Candidate>& candidates);
  // The problem, for people and as a key.
  std::string ToString() const;
  void Take(const Candidate& candidate) {
    algorithm = candidate.algo;
    workspace_bytes = candidate.workspaceSize;
  }
  cublasStatus_t Enqueue(const void* a, const void* b, void* c, void* workspace,
                         cudaStream_t stream) const {
    return Cublas().cublasLtMatmul(Handle(), operation.get(), &alpha, b, left.get(), a, right.get(),
                                   &beta, c, result.get(), c, result.get(), &algorithm, workspace,
                                   workspace_bytes, stream);
  }

  GemmProblem problem;
  int64_t count;
  Matrix a, b, c;
  Operation operation;
  Layout left, right, result;
  cublasLtMatmulAlgo_t algorithm = {};
  size_t workspace_bytes = 0;
  float alpha, beta;
};

// The library is column-major: it computes C^T = op(B)^T op(A)^T, so its left operand is B.
Gemm::Plan::Plan(const GemmProblem& p, const GemmBatch& batch)
    : problem(p),
      count(batch.count),
      a(MatrixOf(p.ab, p.m, p.k, p.transpose_a, p.a_stride, batch.a_batch_stride,
                 batch.begin_step)),
      b(MatrixOf(p.ab, p.k, p.n, p.transpose_b, p.b_stride, batch.b_batch_stride,
                 batch.begin_step)),
      c(MatrixOf(p.c, p.m, p.n, false, p.c_stride, batch.c_batch_stride, batch.begin_step)),
      left(b.LayoutOf(count)),
      right(a.LayoutOf(count)),
      result(c.LayoutOf(count)),
      alpha(p.alpha),
      beta(p.accumulate ? 1.0f : 0.0f) {
  SYNTRA_CHECK(p.epilogue == Epilogue::kNone, "a product of the library with an epilogue");
  SYNTRA_CHECK(FitInt({count}), "a batch of {} products", count);
  SYNTRA_CUBLAS(cublasLtMatmulDescCreate(operation.address(), CUBLAS_COMPUTE_32F, CUDA_R_32F));
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    SYNTRA_CUBLAS(
        cublasLtMatmulDescSetAttribute(operation.get(), attribute, &value, sizeof(value)));
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
}

std::vector<Candidate> Gemm::Plan::Candidates(cublasStatus_t& status) const {
  constexpr int kMost = 8;
  std::vector<Candidate> found(kMost);
  int number = 0;
  status = Cublas().cublasLtMatmulAlgoGetHeuristic(
      Handle(), operation.get(), left.get(), right.get(), result.get(), result.get(),
      PreferenceOf(b, a, c).get(), kMost, found.data(), &number);
  found.resize(status == CUBLAS_STATUS_SUCCESS ? number : 0);
  std::erase_if(found, [](const Candidate& one) { return one.state != CUBLAS_STATUS_SUCCESS; });
  return found;
}

std::vector<double> Gemm::Plan::SecondsOf(const std::vector<Candidate>& candidates) {
  Trial trial;
  const void *from_a = trial.Allocate(a.bytes(count)), *from_b = trial.Allocate(b.bytes(count));
  void *to = trial.Allocate(c.bytes(count)), *workspace = trial.Allocate(kMostWorkspace);
  if (!from_a || !from_b || !to || !workspace) return {};
  return trial.Seconds(candidates.size(), [&](size_t i) {
    Take(candidates[i]);
    return Enqueue(from_a, from_b, to, workspace, trial.stream()) == CUBLAS_STATUS_SUCCESS;
  });
}

std::string Gemm::Plan::ToString() const {
  return fmt::format("{} = {}{} . {}{} in {} products{}", c.ToString(), a.ToString(),
                     problem.transpose_a ? "^T" : "", b.ToString(), problem.transpose_b ? "^T" : "",
                     count, problem.accumulate ? ", added" : "");
}

Gemm::Gemm() = default;
Gemm::Gemm(Gemm&&) noexcept = default;
Gemm& Gemm::operator=(Gemm&&) noexcept = default;
Gemm::~Gemm() = default;

Gemm::Gemm(const GemmProblem& problem, const GemmBatch& batch)
    : plan_(std::make_unique<Plan>(problem, batch)) {
  cublasStatus_t status;
  const std::vector<Candidate> candidates = plan_->Candidates(status);
  if (candidates.empty()) {
    Fail(ExitCode::kInternal, "cuBLASLt has no product {}: {}", plan_->ToString(),
         Cublas().cublasLtGetStatusString(status));
  }
  std::vector<std::string> names;
  for (const Candidate& candidate : candidates) names.push_back(Describe(candidate.algo));
  const size_t chosen =
      ChooseAlgorithm(plan_->ToString(), names, [&] { return plan_->SecondsOf(candidates); });
  plan_->Take(candidates[chosen]);
}

size_t Gemm::workspace_bytes() const { return LibraryWorkspace::Reserved(plan_->workspace_bytes); }

void Gemm::Run(const KernelArguments& call, const void* a, const void* b, void* c,
               std::byte* workspace) const {
  void* scratch = plan_->workspace_bytes > 0 ? LibraryWorkspace::In(workspace) : nullptr;
  CheckCublas(plan_->Enqueue(a, b, c, scratch, static_cast<cudaStream_t>(call.stream)),
              "cublasLtMatmul");
}

}  // namespace syntra::gpu
