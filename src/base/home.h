// SPDX-License-Identifier: Apache-2.0
// Paths that name the home directory as shells do.
#pragma once

#include <string>

namespace syntra {

// Why a path that a user wrote cannot be meant: it begins with "~". Only shells replace that by the
// home directory, and only at the start of a word. "" if the path does not begin so.
std::string HomeFault(const std::string& path);

}  // namespace syntra
