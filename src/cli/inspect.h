// SPDX-License-Identifier: Apache-2.0
// The parts of `syntra inspect` that have files of their own.
#pragma once

#include "cli/command.h"

namespace syntra {

Action SetUpInspectAttention(CLI::App& app);
Action SetUpInspectData(CLI::App& app);
Action SetUpInspectCheckpoint(CLI::App& app);
Action SetUpInspectCheckpoints(CLI::App& app);

}  // namespace syntra
