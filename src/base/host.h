// SPDX-License-Identifier: Apache-2.0
// This machine and this process, for people.
#pragma once

#include <string>
#include <vector>

namespace syntra {

std::string HostName();

// The words of this process's command line; empty where the system does not tell.
std::vector<std::string> CommandLineWords();

}  // namespace syntra
