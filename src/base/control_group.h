// SPDX-License-Identifier: Apache-2.0
// What the control groups around this process allow it, in version 1 or 2 of control groups.
// `root`: where the system's files are, for tests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace syntra {

// Bytes of memory; nothing without a limit.
std::optional<int64_t> ControlGroupMemory(const std::string& root = "");

// Processors at once, 1.5 for instance; nothing without a limit.
std::optional<double> ControlGroupCpus(const std::string& root = "");

}  // namespace syntra
