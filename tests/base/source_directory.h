// SPDX-License-Identifier: Apache-2.0
// The source directory, for tests that read fixtures and configurations. It is the one that the
// tests were compiled from or, if the programs were copied to another machine, SYNTRA_TEST_SOURCE
// of the environment.
#pragma once

#include <cstdlib>
#include <string>

namespace syntra {

inline std::string SourceDirectory() {
  const char* moved = std::getenv("SYNTRA_TEST_SOURCE");
  return moved ? moved : SYNTRA_SOURCE_DIR;
}

}  // namespace syntra
