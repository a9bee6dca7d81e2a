// One process's claim on a shard while it makes it. The claim is a lock of the kernel's, so it ends
// with the process, however that ends; the lock file alone means nothing.
#pragma once

#include <optional>

#include "base/file.h"

namespace syntra {

class ShardClaim {
 public:
  // Empty if another process holds the claim.
  static std::optional<ShardClaim> Try(const Path& shard);
  ShardClaim(ShardClaim&& other) noexcept = default;
  ~ShardClaim();

 private:
  explicit ShardClaim(File file) : file_(std::move(file)) {}

  File file_;
};

}  // namespace syntra
