// SPDX-License-Identifier: Apache-2.0
// Describes this machine and its libraries, for `syntra doctor`.
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
  std::vector<std::string> warnings;  // probable causes of trouble, and what to do about them
};

// Never fails: what cannot be found out is left out or said to be unknown. Starts neither MPI nor
// CUDA.
MachineReport ExamineMachine();

}  // namespace syntra
