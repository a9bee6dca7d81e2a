// SPDX-License-Identifier: Apache-2.0
// This machine and its processes.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace syntra {

std::string HostName();

// The cpus that this process may run on, as Linux lists them: "0-7,16-23"; empty where the system
// does not tell.
std::string AllowedCpus();

// The words of this process's command line; empty where the system does not tell.
std::vector<std::string> CommandLineWords();

// Whether the process has not ended yet. A zombie counts as ended; an orphan can stay one for ever
// in a container whose init reaps no children.
bool Alive(pid_t process);

}  // namespace syntra
