#include "data/shard_claim.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"

namespace syntra {
namespace {

// False if the file was removed (by the holder before us) between our opening and our locking it.
bool StillNamed(const File& file) {
  struct stat opened, named;
  return fstat(file.descriptor(), &opened) == 0 && stat(file.path().c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

}  // namespace

std::optional<ShardClaim> ShardClaim::Try(const Path& shard) {
  const Path path = shard.string() + ".lock";
  while (true) {
    File file = File::OpenForAppend(path);
    int code;
    do {
      code = flock(file.descriptor(), LOCK_EX | LOCK_NB);
    } while (code != 0 && errno == EINTR);
    if (code != 0 && errno == EWOULDBLOCK) return std::nullopt;
    if (code != 0) {
      const int error_number = errno;
      Fail(ExitCode::kResources, "cannot lock {}: {}", path.string(),
           SystemErrorText(error_number));
    }
    if (StillNamed(file)) return ShardClaim(std::move(file));
  }
}

// Removed while the lock is held, so nobody else can own a file of this name.
ShardClaim::~ShardClaim() {
  if (file_.descriptor() >= 0) unlink(file_.path().c_str());
}

}  // namespace syntra
