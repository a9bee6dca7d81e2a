// SPDX-License-Identifier: Apache-2.0
// Runs the program by a shell.
#pragma once

#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "base/file.h"
#include "tests/base/outcome.h"
#include "tests/base/scratch.h"

namespace syntra {

// Runs a shell command in which $syntra is the program.
inline Outcome RunShell(const std::string& command) {
  static const std::string base = ScratchDirectory("shell") / "command";
  ReplaceFileDurably(base + ".sh", "syntra='" SYNTRA_BINARY "'\n" + command + "\n");
  const int status =
      std::system(fmt::format("bash '{0}.sh' >'{0}.out' 2>'{0}.err' </dev/null", base).c_str());
  Outcome outcome;
  outcome.code = CodeOfStatus(status);
  outcome.out = ReadWholeFile(base + ".out");
  outcome.err = ReadWholeFile(base + ".err");
  return outcome;
}

inline Outcome Syntra(const std::string& arguments) { return RunShell("\"$syntra\" " + arguments); }

inline bool IsInstalled(const std::string& program) {
  return RunShell("command -v " + program).code == 0;
}

inline bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace syntra
