// SPDX-License-Identifier: Apache-2.0
// Git LFS pointers: short texts that stand in a clone for large files until `git lfs pull` brings
// these.
#pragma once

#include <string_view>

#include "base/file.h"

namespace syntra {

// How every pointer begins, by Git LFS's specification.
inline constexpr std::string_view kLfsPointerStart = "version https://git-lfs.github.com/spec/";

// Throws Error(code) if the file is such a pointer.
void RefuseLfsPointer(const File& file, ExitCode code);

}  // namespace syntra
