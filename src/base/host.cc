// SPDX-License-Identifier: Apache-2.0
#include "base/host.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <limits>
#include <sstream>

#include "base/text.h"

namespace syntra {

std::string KernelFile(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  // A file of a process that ends meanwhile cannot be read any more; this way that throws nothing.
  text << file.rdbuf();
  return text.str();
}

std::string HostName() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

std::string AllowedCpus() {
  constexpr std::string_view kName = "Cpus_allowed_list:";
  for (const std::string& line : Split(KernelFile("/proc/self/status"), '\n')) {
    if (line.starts_with(kName)) return std::string(StripSpace(line.substr(kName.size())));
  }
  return "";
}

std::vector<std::string> CommandLineWords() {
  std::vector<std::string> words = Split(KernelFile("/proc/self/cmdline"), '\0');
  words.pop_back();  // each word ends with a zero
  return words;
}

bool Alive(pid_t process) {
  if (kill(process, 0) != 0 && errno == ESRCH) return false;
  const std::string status = KernelFile("/proc/" + std::to_string(process) + "/stat");
  const size_t name_end = status.rfind(')');  // the state follows the name of the program
  return name_end == status.npos || status.compare(name_end, 3, ") Z") != 0;
}

std::optional<pid_t> ParseProcessId(std::string_view text) {
  int64_t id = 0;
  if (!ParseInt64(text, &id) || id <= 0 || id > std::numeric_limits<pid_t>::max()) return {};
  return static_cast<pid_t>(id);
}

bool Abandoned(pid_t process) { return process == getpid() || !Alive(process); }

}  // namespace syntra
