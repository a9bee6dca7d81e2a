// SPDX-License-Identifier: Apache-2.0
#include "base/lfs_pointer.h"

#include <unistd.h>

#include <string_view>

namespace syntra {

void RefuseLfsPointer(const File& file, ExitCode code) {
  constexpr std::string_view kBegin = "version https://git-lfs.github.com/spec/";
  constexpr int64_t kMostBytes = 1024;  // of a pointer, by Git LFS's specification
  if (file.Size() >= kMostBytes) return;
  char first[kBegin.size()];
  if (pread(file.descriptor(), first, sizeof first, 0) != sizeof first) return;
  if (std::string_view(first, sizeof first) != kBegin) return;
  Fail(code, "{} is a Git LFS pointer, not the file that it stands for; run git lfs pull there",
       file.path().string());
}

}  // namespace syntra
