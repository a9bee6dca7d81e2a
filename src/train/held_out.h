// SPDX-License-Identifier: Apache-2.0
// Whether what a model is judged on is held out of what it learns from.
#pragma once

#include <span>
#include <string>

#include "base/file.h"

namespace syntra {

// Which validation files are among the training files, too, under whatever name; "" if none is.
std::string FilesNotHeldOut(std::span<const Path> training, std::span<const Path> validation);

}  // namespace syntra
