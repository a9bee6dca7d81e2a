// SPDX-License-Identifier: Apache-2.0
// The text in a locked file that names the process that holds the lock, for people who wait for it.
#pragma once

#include <optional>
#include <string>

#include "base/file_lock.h"

namespace syntra {

// Writes this process into the file that it has locked, in place of what was there. The lock holds
// all the same where that fails, which is a warning.
void NameHolder(FileLock& lock);
// Empties the file before its lock ends, so that it names nobody.
void ForgetHolder(FileLock& lock);

// "process 12 on node7 since 2026-01-31 12:00:00", followed by its job, from the text of a locked
// file; nothing if the text does not say.
std::optional<std::string> DescribeHolder(const std::string& text);
// DescribeHolder for a file whose lock another process has just taken: "another process" if its
// text does not say.
std::string HolderIn(const Path& locked);

}  // namespace syntra
