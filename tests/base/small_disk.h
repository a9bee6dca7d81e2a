// SPDX-License-Identifier: Apache-2.0
// Small file systems in memory, for tests of what happens when they are full. For forked children:
// nobody else sees what they mount, and it ends with them.
#pragma once

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "base/file.h"

namespace syntra {

// Whether this process may mount from now on: as root, or as one in a user namespace of its own,
// which some machines do not allow.
inline bool MayMount() {
  const std::string user = "0 " + std::to_string(geteuid()) + " 1";
  const std::string group = "0 " + std::to_string(getegid()) + " 1";
  if (unshare(CLONE_NEWNS) != 0) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    std::ofstream("/proc/self/setgroups") << "deny";
    std::ofstream("/proc/self/uid_map") << user;
    std::ofstream("/proc/self/gid_map") << group;
  }
  return mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

// `options`: "size=40k", "nr_inodes=5" (which counts the directory itself).
inline bool MountSmallDisk(const Path& path, const std::string& options) {
  return mount("none", path.c_str(), "tmpfs", 0, options.c_str()) == 0;
}

}  // namespace syntra
