// SPDX-License-Identifier: Apache-2.0
// Which version of the program this is.
#pragma once

namespace syntra {

// "0.1.0" for a release, "0.1.0+g82a103d0c1e2" for another commit, ".changed" after it if files
// differed from that commit when the program was built.
const char* Version();

}  // namespace syntra
