// SPDX-License-Identifier: Apache-2.0
// This machine and its processes.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace syntra {

// The whole content of a file of the kernel, whose size is not known before; "" if there is none or
// it cannot be read.
std::string KernelFile(const std::string& path);

std::string HostName();

// The cpus that this process may run on, as Linux lists them: "0-7,16-23"; empty where the system
// does not tell.
std::string AllowedCpus();

// The words of this process's command line; empty where the system does not tell.
std::vector<std::string> CommandLineWords();

// Whether the process has not ended yet. A zombie counts as ended; an orphan can stay one for ever
// in a container whose init reaps no children.
bool Alive(pid_t process);

// The process whose id is `text`; nothing if that is no id.
std::optional<pid_t> ParseProcessId(std::string_view text);

// Whether an unfinished file that names `process` as its writer will never be finished: the process
// has ended, or it is this one, which writes one such file at a time and is not doing so now.
bool Abandoned(pid_t process);

}  // namespace syntra
