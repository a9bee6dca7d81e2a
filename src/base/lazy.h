// SPDX-License-Identifier: Apache-2.0
// A value that is made when it is first asked for.
#pragma once

#include <mutex>
#include <optional>

namespace syntra {

// Made once, also where several threads ask for it; so an object that holds one can be const. A
// `make` that throws leaves nothing, and the next one who asks tries again.
template <typename T>
class Lazy {
 public:
  template <typename Make>
  const T& Get(const Make& make) const {
    const std::scoped_lock lock(mutex_);
    if (!value_) value_.emplace(make());
    return *value_;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::optional<T> value_;
};

}  // namespace syntra
