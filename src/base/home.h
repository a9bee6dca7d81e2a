// SPDX-License-Identifier: Apache-2.0
// Paths that name the home directory as shells do.
#pragma once

#include <string>

namespace syntra {

// Why a path that a user wrote is refused: it begins with "~", which only shells replace by the
// home directory, and only at the start of a word. "" if the path does not begin with it.
std::string HomeFault(const std::string& path);

}  // namespace syntra
