// SPDX-License-Identifier: Apache-2.0
// One process's claim on a shard while it makes it: a lock that ends with the process.
#pragma once

#include <optional>

#include "base/file_lock.h"

namespace syntra {

class ShardClaim {
 public:
  // Empty if another process holds the claim.
  static std::optional<ShardClaim> Try(const Path& shard);
  ShardClaim(ShardClaim&& other) noexcept = default;
  ~ShardClaim();

  // Tells those who wait for the claim that the work goes on.
  void Touch() const;
  // When the holder of a shard's claim last touched it; changes as the holder works.
  static int64_t TouchedAt(const Path& shard);

 private:
  explicit ShardClaim(FileLock lock) : lock_(std::move(lock)) {}

  FileLock lock_;
};

}  // namespace syntra
