// SPDX-License-Identifier: Apache-2.0
#include "base/lfs_pointer.h"

#include <unistd.h>

namespace syntra {

void RefuseLfsPointer(const File& file, ExitCode code) {
  constexpr int64_t kMostBytes = 1024;  // of a pointer, by Git LFS's specification
  if (file.Size() >= kMostBytes) return;
  char first[kLfsPointerStart.size()];
  if (pread(file.descriptor(), first, sizeof first, 0) != sizeof first) return;
  if (std::string_view(first, sizeof first) != kLfsPointerStart) return;
  Fail(code, "{} is a Git LFS pointer, not the file that it stands for; run git lfs pull there",
       file.path().string());
}

}  // namespace syntra
