// SPDX-License-Identifier: Apache-2.0
// The shared class of attention on the GPU. Without query, u, a, positions and query_start, scores
// depend only on the head. E = exp(S - largest of the row) is computed once per head and call; with
// `causal` it is zero for keys after the query. If the mask m of an example keeps its first keys,
//
//   D_b[i] = sum_j E[i,j] m_b[j]
//   Y_b[i] = sum_j E[i,j] m_b[j] V_b[j] / D_b[i]
//
// so all its products are products of E with activations in place. Two kinds of examples do not fit
// this form: packed ones, whose queries see different keys, and those whose mask hides nearly all
// of a row of E (kLeastSum). They are left to the kernels that compute the scores of each example.
// The device finds out which ones they are, so a call launches the same grids for all segments.
#pragma once

#include <optional>

#include "kernels/cuda/attention/terms.h"
#include "kernels/cuda/block_product.h"
#include "kernels/workspace.h"

namespace syntra::attention {

// An example with a smaller D_b[i] does not fit. With a larger one no precision is lost: terms that
// underflow in f32 or bf16, which have the same range, are below 2^-126, that is 2^-62 of their
// sum.
inline constexpr float kLeastSum = 0x1p-64f;

// The arrays that the products of the shared class need, in the call's workspace.
template <typename T>
struct SharedScores {
  int64_t batch, heads, queries, keys, head_size;
  bool causal;
  int64_t stride;          // elements between rows of `exponentials`, a multiple of kInner<T>
  T* exponentials;         // E, [H, T, stride], zero beyond the keys
  float* largest;          // [H, T]
  float* inverse_sums;     // [B, H, T]: 1 / D, or 0 if no key is allowed
  int32_t* key_lengths;    // [B]: number of keys of an example; kLeft if the example does not fit
  int32_t* query_lengths;  // [B]: number of its queries before padding
  int32_t* left;           // the examples that do not fit, in the format of Terms::examples
  // The numbers of parts into which the Hopper kernels for products of E with values and with
  // gradients split the batch; 0: the kernels for all GPUs compute these products.
  int64_t value_parts, gradient_parts;

  __device__ int64_t RowOf(int64_t b, int64_t h, int64_t i) const {
    return (b * heads + h) * queries + i;
  }
  __device__ const T* Exponentials(int64_t h, int64_t i) const {
    return exponentials + (h * queries + i) * stride;
  }
  __device__ bool Fits(int64_t b) const { return key_lengths[b] >= 0; }
};
inline constexpr int32_t kLeft = -1;

// The output log_sum_exp of the forward pass.
struct LogSumExp {
  float* to = nullptr;  // [B, H, T]; null: not needed
  bool accumulate = false;
};

class SharedAttention {
 public:
  // nullopt if the call is of another class, or its rows do not begin at multiples of 16 bytes.
  // `inputs` are those of attention or attention_grad.
  static std::optional<SharedAttention> For(const Dimensions& z, std::span<const TensorType> inputs,
                                            WorkspaceLayout& layout);

  // Computes everything in SharedScores, and log_sum_exp of the examples that fit.
  template <typename T>
  SharedScores<T> Run(const KernelArguments& arguments, const Terms<T>& terms,
                      const LogSumExp& log_sum_exp) const;

  // The addresses of the arrays in the workspace.
  template <typename T>
  SharedScores<T> In(std::byte* workspace) const;

  // Whether some examples may not fit. Without segments all fit, since every row sees the key with
  // its largest score.
  bool may_leave() const { return segments_; }
  int64_t stride() const { return stride_; }

 private:
  SharedAttention(const Dimensions& z, DType dtype, bool segments, WorkspaceLayout& layout);

  Dimensions z_;
  bool segments_;
  int64_t stride_;
  int64_t value_parts_ = 0, gradient_parts_ = 0;  // SharedScores
  size_t exponentials_, largest_, inverse_sums_, key_lengths_, query_lengths_, left_;
};

// The operands of a product of E or its transpose with an activation.
template <typename T>
struct Mixed {
  const T* from;
  T* to;
  bool accumulate;
};

// Computes Y from V for the examples that fit.
template <typename T>
void MixValues(const KernelArguments& arguments, const SharedScores<T>& scores,
               const Mixed<T>& mixed);
// Computes dV_b[j] = m_b[j] sum_i E[i,j] g_b[i] from g = dY / D.
template <typename T>
void MixGradients(const KernelArguments& arguments, const SharedScores<T>& scores,
                  const Mixed<T>& mixed);

// The rest of attention_grad for the examples that fit.
class SharedGradients {
 public:
  SharedGradients(const OpCall& call, const Dimensions& z, const SharedAttention& shared,
                  WorkspaceLayout& layout);

  template <typename T>
  void Run(const KernelArguments& arguments, const SharedScores<T>& scores,
           const Backward<T>& call) const;

 private:
  Dimensions z_;
  int64_t parts_;
  bool on_hopper_;
  size_t scaled_, means_, sums_, bias_sums_;
};

}  // namespace syntra::attention
