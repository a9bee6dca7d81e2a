// Commands that all ranks of an MPI job run together.
#pragma once

#include <functional>

#include "dist/communicator.h"

namespace syntra {

// Joins the job's ranks and runs `work` on each. An error of rank 0 is printed; one that only
// another rank has is printed with its number. Either ends the whole job with the error's exit
// code.
ExitCode WithRanks(const std::function<ExitCode(Communicator&)>& work);

}  // namespace syntra
