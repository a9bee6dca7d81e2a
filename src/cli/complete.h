// SPDX-License-Identifier: Apache-2.0
// Completes the end of a command line, for shells.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace syntra {

struct Choice {
  std::string word;     // whole; one that ends with '=' or '/' is to be continued
  std::string summary;  // what it is; may be empty
};

// The words that can complete the last of `words`, which follow the program's name. None: the shell
// may offer files.
std::vector<Choice> Complete(const CLI::App& root, const std::vector<std::string>& words);

}  // namespace syntra
