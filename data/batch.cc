// SPDX-License-Identifier: Apache-2.0
#include "data/batch.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace syntra {

Batch::Batch(int64_t rows, int64_t input_length, int64_t target_length, int64_t targets_per_input)
    : rows(rows),
      input_length(input_length),
      target_length(target_length),
      targets_per_input(targets_per_input) {
  for (const char* name : {"encoder_ids", "encoder_segments", "encoder_positions"}) {
    if (input_length > 0) tensors_[name].resize(rows * input_length);
  }
  for (const char* name : {"decoder_ids", "decoder_segments", "decoder_positions", "targets"}) {
    tensors_[name].resize(rows * targets_per_input * target_length);
  }
  if (input_length == 0) {
    tensors_["decoder_prefix_ends"].resize(rows * targets_per_input * target_length);
  }
}

const std::vector<int32_t>& Batch::operator[](std::string_view name) const {
  const auto found = tensors_.find(name);
  SYNTRA_CHECK(found != tensors_.end(), "a batch without {}", name);
  return found->second;
}

std::vector<int32_t>& Batch::operator[](std::string_view name) {
  return const_cast<std::vector<int32_t>&>(std::as_const(*this)[name]);
}

std::span<const int32_t> Batch::Row(std::string_view name, int64_t row) const {
  const int64_t length = LengthOf(name);
  return std::span((*this)[name]).subspan(row * length, length);
}

int64_t Batch::LengthOf(std::string_view name) const {
  return name.starts_with("encoder") ? input_length : target_length;
}

uint64_t LabelChecksum(const Batch& batch) {
  uint64_t sum = 0;
  const auto first = static_cast<uint64_t>(batch.first_example * batch.target_length);
  const std::vector<int32_t>& targets = batch["targets"];
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] <= 0) continue;
    // splitmix64 of the place and the id.
    uint64_t mixed = (first + i) * 0x9e3779b97f4a7c15ull + static_cast<uint32_t>(targets[i]);
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ull;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebull;
    sum += mixed ^ (mixed >> 31);
  }
  return sum;
}

void CountTargetTokens(Batch* batch) {
  batch->target_tokens =
      std::ranges::count_if((*batch)["targets"], [](int32_t id) { return id > 0; });
}

}  // namespace syntra
