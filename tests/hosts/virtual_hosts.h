// SPDX-License-Identifier: Apache-2.0
// Several hosts on this machine, "node1", "node2", ..., with TCP between them: the script
// `virtual_hosts` in this folder says what they share. They are gone, with all that runs on them,
// when this is destroyed or the test ends in any way.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "base/file.h"
#include "tests/e2e/program.h"

namespace syntra {

class VirtualHosts {
 public:
  // Writes to `folder`, which must have no space in its name.
  VirtualHosts(Path folder, int count);
  ~VirtualHosts();
  VirtualHosts(const VirtualHosts&) = delete;
  VirtualHosts& operator=(const VirtualHosts&) = delete;

  // Why there are none; empty if there are.
  std::string missing() const;

  // Starts a program by launch/ranks on the first of `hosts`, in the form of mpirun's --host:
  // "node1:2,node2:2" has two ranks on each. As with ssh, ranks get no more of the environment than
  // `environment` (NAME=VALUE). `options`: more of mpirun's.
  StartOptions Start(const std::string& hosts, const std::vector<std::string>& environment = {},
                     const std::vector<std::string>& options = {}) const;

  // Sends a signal, such as "KILL", to all that runs there.
  void Signal(const std::string& host, const std::string& signal) const;
  // From now on nothing reaches or leaves the host, and nobody is told.
  void Unplug(const std::string& host) const;
  void Plug(const std::string& host) const;
  // Power is lost: nobody is told that the processes have ended.
  void PowerOff(const std::string& host) const;
  // The host sends and receives at most so many bits a second.
  void Limit(const std::string& host, int64_t bits) const;
  // How many bytes it has sent to other hosts.
  int64_t Sent(const std::string& host) const;
  // How many processes run there.
  int64_t Processes(const std::string& host) const;

 private:
  // Runs the script and returns what it prints.
  std::string Do(const std::string& action) const;

  Path folder_;
  FILE* keeps_up_;
};

}  // namespace syntra
