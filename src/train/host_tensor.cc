// SPDX-License-Identifier: Apache-2.0
#include "train/host_tensor.h"

#include <algorithm>
#include <utility>

namespace syntra {

std::vector<HostTensor> HostTensorsIn(Arena& arena, std::vector<PlannedTensor> planned) {
  std::vector<HostTensor> tensors;
  for (PlannedTensor& tensor : planned) {
    float* values = arena.host().subspan(tensor.offset).data();
    tensors.push_back({std::move(tensor), values});
  }
  return tensors;
}

std::vector<TensorRecord> RecordsOf(std::span<const HostTensor> tensors) {
  std::vector<TensorRecord> records;
  for (const HostTensor& tensor : tensors) {
    const float* values = tensor.values;
    const auto add = [&](const TensorType& type, int64_t begin) {
      records.push_back({tensor.name, type, reinterpret_cast<const std::byte*>(values), begin});
      values += type.shape.size();
    };
    if (tensor.whole()) {
      add(tensor.type, 0);
      continue;
    }
    for (const ElementRange& part : tensor.held) add({DType::kF32, {part.size()}}, part.begin);
  }
  return records;
}

void HostTensor::Fill(const std::function<void(TensorView)>& read) const {
  if (held.empty()) return;
  if (whole()) return read({values, type});
  std::vector<float> all(type.shape.size());
  read({all.data(), type});
  float* to = values;
  for (const ElementRange& part : held) {
    to = std::copy(all.begin() + part.begin, all.begin() + part.end, to);
  }
}

}  // namespace syntra
