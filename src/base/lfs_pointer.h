// SPDX-License-Identifier: Apache-2.0
// Git LFS pointers: short texts that stand in a clone for large files until `git lfs pull` brings
// these.
#pragma once

#include "base/file.h"

namespace syntra {

// Throws Error(code) if the file is such a pointer.
void RefuseLfsPointer(const File& file, ExitCode code);

}  // namespace syntra
