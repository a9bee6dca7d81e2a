// SPDX-License-Identifier: Apache-2.0
// Finds directories of a kind below another one, for errors that say what a user may have meant who
// named a directory of runs instead of a run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/file.h"

namespace syntra {

// The directories at most two levels below that are `wanted`; these are not searched themselves.
// What cannot be read is passed over.
std::vector<std::string> DirectoriesBelow(const Path& directory,
                                          const std::function<bool(const Path&)>& wanted);

}  // namespace syntra
