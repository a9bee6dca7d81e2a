// SPDX-License-Identifier: Apache-2.0
// The environment variables that the program reads.
#pragma once

#include <span>

namespace syntra {

struct EnvironmentVariable {
  const char* name;
  const char* meaning;      // for the manual pages; README.md has the same list
  const char* values = "";  // all that it may be, with spaces between them; "": its reader says
};

std::span<const EnvironmentVariable> EnvironmentVariables();

// Throws Error(kConfig) if one of them has a value that means nothing. An empty one counts as not
// set.
void CheckEnvironment();

}  // namespace syntra
