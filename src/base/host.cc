// SPDX-License-Identifier: Apache-2.0
#include "base/host.h"

#include <unistd.h>

#include "base/file.h"
#include "base/text.h"

namespace syntra {

std::string HostName() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

std::vector<std::string> CommandLineWords() {
  std::vector<std::string> words;
  try {
    words = Split(ReadWholeFile("/proc/self/cmdline"), '\0');
    if (!words.empty()) words.pop_back();  // each word ends with a zero
  } catch (const std::exception&) {
  }
  return words;
}

}  // namespace syntra
