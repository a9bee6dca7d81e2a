// SPDX-License-Identifier: Apache-2.0
#include "cli/environment.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace syntra {

std::span<const EnvironmentVariable> EnvironmentVariables() {
  static constexpr EnvironmentVariable kVariables[] = {
      {"OMP_NUM_THREADS", "most threads of a process, if train.threads is not set"},
      {"OMP_WAIT_POLICY",
       "passive: threads always sleep instead of spinning while they wait for each other, slower "
       "on cores of their own; otherwise only while other work uses their cores"},
      {"SYNTRA_BINDING", "none: ranks are not bound to cores of their own", "none"},
      {"SYNTRA_WATCHDOG",
       "limits of phases that take longer than the watchdog allows, in seconds, such as "
       "save=3600,init=600"},
      {"SYNTRA_ALGORITHMS",
       "first: cuBLASLt's first algorithm is taken, and none is timed or remembered; own: the "
       "same, but our own kernel where there is one",
       "first own"},
      {"SYNTRA_HOPPER",
       "off: Hopper GPUs use the kernels of other GPUs; two_passes: attention's "
       "backward pass always has a pass over queries and one over keys",
       "off two_passes"},
  };
  return kVariables;
}

void CheckEnvironment() {
  for (const EnvironmentVariable& variable : EnvironmentVariables()) {
    const char* value = std::getenv(variable.name);
    if (!value || !*value || !*variable.values) continue;
    const std::vector<std::string> values = Split(variable.values, ' ');
    if (std::ranges::find(values, value) != values.end()) continue;
    Fail(ExitCode::kConfig,
         "the environment variable {} is \"{}\", which means nothing; set it to {}, or unset it",
         variable.name, Printable(value, 40), Join(values, " or "));
  }
}

}  // namespace syntra
