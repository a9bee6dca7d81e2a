// SPDX-License-Identifier: Apache-2.0
// Commands that all ranks of an MPI job run together.
#pragma once

#include <functional>
#include <string>

#include "dist/communicator.h"
#include "run/watchdog.h"

namespace syntra {

// A rank's part of a command. The watchdog is in phase kInit.
using RankWork = std::function<ExitCode(Communicator&, Watchdog&)>;

// Joins the job's ranks, checks that all run this command of the same program, and runs `work` on
// each, under the watchdog from the start to the end. An error of rank 0 is printed; one that only
// another rank has is printed with its number. Either ends the whole job with the error's exit
// code.
ExitCode WithRanks(const std::string& command, const RankWork& work);

// Prints an error of this rank: rank 0's at once. Most errors meet every rank, so another rank
// waits for its launcher to end it, which mpirun does when rank 0 has ended; if nobody does, the
// error is its own, and is printed with its number.
void PrintErrorOfRank(int rank, const std::string& message);

}  // namespace syntra
