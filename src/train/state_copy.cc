// SPDX-License-Identifier: Apache-2.0
#include "train/state_copy.h"

#include <cstring>

#include "core/thread.h"

namespace syntra {
namespace {

constexpr int64_t kCopyGrain = int64_t{1} << 20;  // bytes

}  // namespace

void StateCopy::Take(std::span<const HostTensor> tensors) {
  std::vector<TensorRecord> records = RecordsOf(tensors);
  size_t bytes = 0;
  for (const TensorRecord& record : records) bytes += AlignUp(record.type.bytes());
  if (memory_.size() < bytes) memory_ = Buffer(bytes, "the copy of the state that is saved");
  std::byte* to = memory_.data();
  for (TensorRecord& record : records) {
    const size_t size = record.type.bytes();
    ParallelFor(static_cast<int64_t>(size), kCopyGrain, [&](int64_t begin, int64_t end) {
      std::memcpy(to + begin, record.data + begin, static_cast<size_t>(end - begin));
    });
    record.data = to;
    to += AlignUp(size);
  }
  tensors_ = std::move(records);
}

}  // namespace syntra
