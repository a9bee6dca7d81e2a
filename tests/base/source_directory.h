// SPDX-License-Identifier: Apache-2.0
// Where the sources lie, for tests that read fixtures and configurations: where they were compiled,
// or SYNTRA_TEST_SOURCE of the environment on a machine that programs were carried to.
#pragma once

#include <cstdlib>
#include <string>

namespace syntra {

inline std::string SourceDirectory() {
  const char* moved = std::getenv("SYNTRA_TEST_SOURCE");
  return moved ? moved : SYNTRA_SOURCE_DIR;
}

}  // namespace syntra
