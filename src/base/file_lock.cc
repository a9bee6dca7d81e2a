#include "base/file_lock.h"

#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/error.h"

namespace syntra {

std::optional<FileLock> FileLock::Try(const Path& path) {
  while (true) {
    FileLock lock(File::OpenForAppend(path));
    int result;
    do {
      result = flock(lock.file_.descriptor(), LOCK_EX | LOCK_NB);
    } while (result != 0 && errno == EINTR);
    if (result != 0 && errno == EWOULDBLOCK) return std::nullopt;
    if (result != 0) {
      const int error_number = errno;
      Fail(ExitCode::kResources, "cannot lock {}: {}", path.string(),
           SystemErrorText(error_number));
    }
    // The holder before us may have removed it between our opening and our locking it.
    if (lock.IsStillNamed()) return lock;
  }
}

bool FileLock::IsStillNamed() const {
  struct stat opened, named;
  if (fstat(file_.descriptor(), &opened) != 0) return false;
  if (stat(path().c_str(), &named) != 0) {
    // Other errors say nothing of the name: a file server may be away for a moment.
    return errno != ENOENT && errno != ENOTDIR && errno != ESTALE;
  }
  return opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

}  // namespace syntra
