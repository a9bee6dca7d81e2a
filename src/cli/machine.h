// SPDX-License-Identifier: Apache-2.0
// What this machine and its libraries are, for `syntra doctor`.
#pragma once

#include <string>
#include <vector>

namespace syntra {

struct Fact {
  std::string section;  // "cpu", "memory", ...
  std::string name;
  std::string value;
};

struct MachineReport {
  std::vector<Fact> facts;
  std::vector<std::string> warnings;  // what will probably cause trouble, and what to do
};

// Never fails: what cannot be found out is left out or said to be unknown. Starts neither MPI nor
// CUDA.
MachineReport ExamineMachine();

}  // namespace syntra
