// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/mask_check.h"

#include <vector>

#include "kernels/bit_mask.h"
#include "kernels/cuda/bit_mask.h"
#include "kernels/cuda/gemm.h"
#include "kernels/cuda/launch.h"
#include "kernels/operands.h"

#if defined(__CUDACC__)
#include "kernels/cuda/trial.h"
#else
#include "simt/trial.h"
#endif

namespace syntra::gpu {
namespace {

// Several words in a row and a tile that is not full.
constexpr int64_t kRows = 136, kColumns = 3 * kMaskRowBits, kInner = 32;

// Elements of 1 and -1 without a pattern, then zeros.
template <typename T>
struct Signs {
  T* to;
  uint32_t seed;
  int64_t count;

  __device__ void operator()(int64_t i, int n) const {
    for (int64_t at = i; at < i + n; ++at) {
      uint32_t bits = (seed + static_cast<uint32_t>(at)) * 0x9E3779B1u;
      bits = (bits ^ bits >> 15) * 0x85EBCA77u;
      const float sign = bits >> 31 != 0 ? 1.0f : -1.0f;
      to[at] = FromFloat<T>(at < count ? sign : 0.0f);
    }
  }
};

// The products of A and B: odd numbers, which are exact in all types, and of which none is 0. So
// B's last row is zeros.
class MaskTrial {
 public:
  MaskTrial(DType ab, DType c)
      : problem_{.m = kRows, .n = kColumns, .k = kInner, .ab = ab, .c = c},
        matrix_{c, {kRows, kColumns}},
        a_(Allocate(kRows * kInner * SizeOf(ab))),
        b_(Allocate(kInner * kColumns * SizeOf(ab))),
        product_(Allocate(matrix_.bytes())) {
    call_.stream = trial_.stream();
    WithActivation(ab, [&](auto type) {
      using T = decltype(type);
      constexpr int64_t kOfA = kRows * kInner, kOfB = kInner * kColumns;
      Elementwise(call_, kOfA, Signs<T>{static_cast<T*>(a_), 1, kOfA});
      Elementwise(call_, kOfB, Signs<T>{static_cast<T*>(b_), 1 + kOfA, kOfB - kColumns});
    });
  }

  void* NewMask() { return Allocate(MaskOf(matrix_.shape).bytes()); }
  void Multiply(Epilogue epilogue, void* mask) {
    GemmProblem problem = problem_;
    problem.epilogue = epilogue;
    const Gemm gemm(problem);
    auto* workspace = static_cast<std::byte*>(Allocate(gemm.workspace_bytes()));
    gemm.Run(call_, a_, b_, product_, workspace, mask);
  }
  // Of what is positive in the last product.
  void Write(void* mask) { WriteMask(call_, matrix_, product_, mask); }
  std::vector<std::byte> Fetch(const void* mask) {
    return trial_.Fetch(mask, MaskOf(matrix_.shape).bytes());
  }

 private:
  void* Allocate(size_t bytes) {
    void* memory = trial_.Allocate(bytes);
    if (!memory) Fail(ExitCode::kResources, "the GPU has no memory to try a product");
    return memory;
  }

  Trial trial_;
  KernelArguments call_ = {};
  GemmProblem problem_;
  TensorType matrix_;
  void *a_, *b_, *product_;
};

}  // namespace

bool LibraryMaskIsOurs(Epilogue epilogue, DType ab, DType c) {
  const GemmProblem problem{
      .m = kRows, .n = kColumns, .k = kInner, .ab = ab, .c = c, .epilogue = epilogue};
  if (!Gemm::Offers(problem)) return false;
  MaskTrial trial(ab, c);
  void *ours = trial.NewMask(), *theirs = trial.NewMask();
  trial.Multiply(Epilogue::kNone, nullptr);
  trial.Write(ours);
  if (epilogue == Epilogue::kReluMask) {
    trial.Multiply(epilogue, theirs);
  } else {
    trial.Multiply(epilogue, ours);
    trial.Write(theirs);
  }
  return trial.Fetch(ours) == trial.Fetch(theirs);
}

}  // namespace syntra::gpu
