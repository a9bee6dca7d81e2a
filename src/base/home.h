// SPDX-License-Identifier: Apache-2.0
// Paths that name the home directory as shells do.
#pragma once

#include <string>

namespace syntra {

// Why a path that a user wrote cannot be meant: it begins with "~", of which only shells make the
// home directory, and not in the middle of a word. "" if it does not.
std::string HomeFault(const std::string& path);

}  // namespace syntra
