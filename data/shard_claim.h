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

  // Whether the holder before this one was killed: what it was writing may still lie there.
  bool was_abandoned() const { return was_abandoned_; }
  // Shows the processes that wait for the claim that this one is still working.
  void Touch() const;
  // The time at which the holder of the claim on `shard` last called Touch, as ChangeTime.
  static int64_t TouchedAt(const Path& shard);
  // The process that holds the claim on `shard` (HolderIn).
  static std::string HolderOf(const Path& shard);

 private:
  ShardClaim(FileLock lock, bool was_abandoned)
      : lock_(std::move(lock)), was_abandoned_(was_abandoned) {}

  FileLock lock_;
  bool was_abandoned_;
};

}  // namespace syntra
