// SPDX-License-Identifier: Apache-2.0
#include "core/arena.h"

#include <algorithm>

namespace syntra {

Arena::Arena(Device& device, int64_t elements, const char* purpose)
    : device_(&device),
      elements_(elements),
      purpose_(purpose),
      values_(device.Allocate(elements * sizeof(float), purpose)) {}

std::span<float> Arena::host() {
  const bool same = device_->is_host();
  if (!same && copy_.size() == 0 && elements_ > 0) {
    copy_ = device_->AllocateStaging(values_.size(), purpose_);
    // As the arena began, also where it has gaps that no tensor covers.
    std::fill_n(copy_.data(), copy_.size(), std::byte{0});
  }
  return {reinterpret_cast<float*>((same ? values_ : copy_).data()),
          static_cast<size_t>(elements_)};
}

void Arena::Fetch() {
  if (!device_->is_host()) device_->CopyOut(host().data(), values_.data(), values_.size());
}

void Arena::Send() {
  if (!device_->is_host()) device_->CopyIn(values_.data(), host().data(), values_.size());
}

}  // namespace syntra
