// SPDX-License-Identifier: Apache-2.0
// Attention probabilities that all examples share.
#include "kernels/cpu/attention/shared.h"

#include <algorithm>
#include <cstring>

#include "core/buffer.h"

namespace syntra::attention {

bool SharedProbabilities::Serves(const Dimensions& z, std::span<const TensorType> inputs) {
  if (z.IsSparse()) return false;
  for (int i : {kQuery, kU, kA, kKeyPositions, kPrefixEnds}) {
    if (inputs[i].present()) return false;
  }
  return inputs.size() != kInputCount || !inputs[kQueryStart].present();
}

SharedProbabilities::SharedProbabilities(const Dimensions& z, DType dtype,
                                         const QueryBlocks& blocks, WorkspaceLayout& call)
    : z_(z), dtype_(dtype), blocks_(blocks.all()) {
  for (const QueryBlock& block : blocks_) {
    offsets_.push_back(head_elements_);
    head_elements_ += static_cast<int64_t>(AlignUp(block.rows * block.keys, 32));
  }
  exact_ = call.PlaceFloats(z_.heads * head_elements_);
  if (dtype_ == DType::kBF16) rounded_ = call.Place(z_.heads * head_elements_ * SizeOf(dtype_));
  log_sum_exp_ = call.PlaceFloats(z_.heads * z_.queries);
  for (int64_t size : {4, 3, 2}) {
    if (group_size_ == 1 && z_.batch % size == 0) group_size_ = size;
  }
}

void SharedProbabilities::ComputeBlock(const WorkUnit& unit, const ScoreProducts& scores,
                                       int64_t block) const {
  const Workspace& w = unit.workspace;
  const int64_t h = unit.h;
  const Tile tile = scores.TileOf(blocks_[block], {}, exact(h, block, w), w);
  std::fill_n(tile.scores, tile.rows * tile.stride, 0.0f);
  std::byte* rounded = nullptr;
  if (dtype_ == DType::kBF16) {
    rounded = w.call + rounded_ + (h * head_elements_ + offsets_[block]) * SizeOf(dtype_);
  }
  Softmax(scores.Terms(unit, /*masked=*/false), tile, rounded, log_sum_exp(h, w) + tile.first,
          nullptr);
}

float* SharedProbabilities::exact(int64_t h, int64_t block, const Workspace& w) const {
  return reinterpret_cast<float*>(w.call + exact_) + h * head_elements_ + offsets_[block];
}

const void* SharedProbabilities::operand(int64_t h, int64_t block, const Workspace& w) const {
  if (dtype_ != DType::kBF16) return exact(h, block, w);
  return w.call + rounded_ + (h * head_elements_ + offsets_[block]) * SizeOf(dtype_);
}

float* SharedProbabilities::log_sum_exp(int64_t h, const Workspace& w) const {
  return reinterpret_cast<float*>(w.call + log_sum_exp_) + h * z_.queries;
}

std::span<const int64_t> SharedProbabilities::GroupFrom(std::span<const int64_t> examples,
                                                        int64_t from) const {
  return examples.subspan(from, std::min(group_size_, std::ssize(examples) - from));
}

void SharedProbabilities::GatherGroup(void* activation, const HeadLayout& layout,
                                      std::span<const int64_t> examples, int64_t h,
                                      std::byte* out) const {
  const int64_t stride = group_size_ * z_.head_size;
  const auto element = static_cast<int64_t>(SizeOf(dtype_));
  if (std::ssize(examples) < group_size_) std::memset(out, 0, layout.rows() * stride * element);
  for (const int64_t example : examples) {
    GatherRows(layout.AllRowsOf(activation, example, h), out, stride);
    out += z_.head_size * element;
  }
}

}  // namespace syntra::attention
