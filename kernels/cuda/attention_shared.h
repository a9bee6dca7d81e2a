// SPDX-License-Identifier: Apache-2.0
// The shared class of attention on the GPU: without query, u and a, positions and query_start,
// scores depend on the head alone. With E = exp(S - largest of the row), zero where a key is later
// than the query under `causal`, once per head and call, an example whose mask m leaves its first
// keys has
//
//   D_b[i] = sum_j E[i,j] m_b[j]
//   Y_b[i] = sum_j E[i,j] m_b[j] V_b[j] / D_b[i]
//
// so that all its products are those of E with activations as they lie. Examples that do not fit
// this form are left to the kernels that compute scores anew for each example: packed ones, whose
// queries see different keys, and those that hide nearly all of a row of E (kLeastSum). Which do is
// found on the device, so a call launches the same grids whatever its segments hold.
#pragma once

#include <optional>

#include "kernels/cuda/attention_terms.h"
#include "kernels/cuda/product.h"
#include "kernels/workspace.h"

namespace syntra::attention {

// An example with a smaller D_b[i] does not fit. Above it nothing is lost: terms that do not fit
// f32's range, or bf16's which is the same, are below 2^-126, and so 2^-62 of their sum.
inline constexpr float kLeastSum = 0x1p-64f;

// What the products of the shared class need, in the call's workspace.
template <typename T>
struct SharedScores {
  int64_t batch, heads, queries, keys, head_size;
  bool causal;
  int64_t stride;          // elements between rows of `exponentials`, a multiple of kInner<T>
  T* exponentials;         // E, [H, T, stride], zero beyond the keys
  float* largest;          // [H, T]
  float* inverse_sums;     // [B, H, T]: 1 / D, 0 where nothing is allowed
  int32_t* key_lengths;    // [B]: the keys that an example's queries see, kLeft if it does not fit
  int32_t* query_lengths;  // [B]: its queries before padding
  int32_t* left;           // the examples that do not fit, as Terms::examples

  __device__ int64_t RowOf(int64_t b, int64_t h, int64_t i) const {
    return (b * heads + h) * queries + i;
  }
  __device__ const T* Exponentials(int64_t h, int64_t i) const {
    return exponentials + (h * queries + i) * stride;
  }
  __device__ bool Fits(int64_t b) const { return key_lengths[b] >= 0; }
};
inline constexpr int32_t kLeft = -1;

// The forward pass's log_sum_exp.
struct LogSumExp {
  float* to = nullptr;  // [B, H, T]; null: not wanted
  bool accumulate = false;
};

class SharedAttention {
 public:
  // nullopt if the call is of another class, or lies in memory so that its rows do not begin at
  // multiples of 16 bytes. `inputs`: of attention or attention_grad.
  static std::optional<SharedAttention> For(const Sizes& sizes, std::span<const TensorType> inputs,
                                            WorkspaceLayout& layout);

  // Computes everything in SharedScores, and log_sum_exp of the examples that fit.
  template <typename T>
  SharedScores<T> Run(const KernelArguments& arguments, const Terms<T>& terms,
                      const LogSumExp& log_sum_exp) const;

  // Where it lies.
  template <typename T>
  SharedScores<T> In(std::byte* workspace) const;

  // Whether there can be examples that do not fit: not without segments, where every row sees the
  // key of its largest score.
  bool may_leave() const { return segments_; }
  int64_t stride() const { return stride_; }

 private:
  SharedAttention(const Sizes& sizes, DType dtype, bool segments, WorkspaceLayout& layout);

  Sizes z_;
  bool segments_;
  int64_t stride_;
  size_t exponentials_, largest_, inverse_sums_, key_lengths_, query_lengths_, left_;
};

// An activation that is the product of E or its transpose with another.
template <typename T>
struct Mixed {
  const T* from;
  T* to;
  bool accumulate;
};

// Y from V, for the examples that fit.
template <typename T>
void MixValues(const KernelArguments& arguments, const SharedScores<T>& scores,
               const Mixed<T>& mixed);
// dV_b[j] = m_b[j] sum_i E[i,j] g_b[i] from g = dY / D.
template <typename T>
void MixGradients(const KernelArguments& arguments, const SharedScores<T>& scores,
                  const Mixed<T>& mixed);

// The rest of attention_grad of the examples that fit.
class SharedGradients {
 public:
  SharedGradients(const OpCall& call, const Sizes& sizes, const SharedAttention& shared,
                  WorkspaceLayout& layout);

  template <typename T>
  void Run(const KernelArguments& arguments, const SharedScores<T>& scores,
           const Backward<T>& call) const;

 private:
  Sizes z_;
  int64_t parts_;
  size_t scaled_, means_, sums_;
};

}  // namespace syntra::attention
