// SPDX-License-Identifier: Apache-2.0
// A process's claim on the shard that it is making: a file lock that ends with the process.
#pragma once

#include <optional>
#include <string>

#include "base/file_lock.h"

namespace syntra {

class ShardClaim {
 public:
  // Empty if another process holds the claim.
  static std::optional<ShardClaim> Try(const Path& shard);
  ShardClaim(ShardClaim&& other) noexcept = default;
  ~ShardClaim();

  // Shows the processes that wait for the claim that this one is still working.
  void Touch() const;
  // The time at which the holder of the claim on `shard` last called Touch, as ChangeTime.
  static int64_t TouchedAt(const Path& shard);
  // The process that holds the claim on `shard` (HolderIn).
  static std::string HolderOf(const Path& shard);

 private:
  explicit ShardClaim(FileLock lock) : lock_(std::move(lock)) {}

  FileLock lock_;
};

}  // namespace syntra
