// SPDX-License-Identifier: Apache-2.0
#include "data/shard_claim.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/lock_holder.h"

namespace syntra {
namespace {

Path LockPath(const Path& shard) { return shard.string() + ".lock"; }

}  // namespace

std::optional<ShardClaim> ShardClaim::Try(const Path& shard) {
  std::optional<FileLock> lock = FileLock::Try(LockPath(shard));
  if (!lock) return std::nullopt;
  const bool was_abandoned = lock->file().Size() > 0;  // a holder that ends removes the file
  NameHolder(*lock);
  return ShardClaim(std::move(*lock), was_abandoned);
}

// The file is removed while the lock is held, so no other process can hold a lock on it.
ShardClaim::~ShardClaim() {
  if (lock_.descriptor() >= 0) unlink(lock_.path().c_str());
}

void ShardClaim::Touch() const { futimens(lock_.descriptor(), nullptr); }

int64_t ShardClaim::TouchedAt(const Path& shard) { return ChangeTime(LockPath(shard)); }

std::string ShardClaim::HolderOf(const Path& shard) { return HolderIn(LockPath(shard)); }

}  // namespace syntra
