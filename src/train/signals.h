// Requests to save and to stop that reach a running job: signals and files in the run directory.
//
//   SIGUSR1, SIGTERM, SIGINT, file STOP   save and exit with code 75 (kRequeue)
//   SIGUSR2, file SAVE                    save and go on
//
// Handlers only set flags; the run polls (requests.h) and combines the flags of all ranks, so all
// save at the same step even if one rank got the signal. Asking twice means now: SIGINT within 5 s
// of another INT or TERM, or a second SIGTERM within 5 s of the first request, ends the process at
// once with 128 + signal. Later SIGTERMs change nothing, since schedulers repeat it when their
// grace ends.
#pragma once

#include "base/file.h"

namespace syntra {

// In order of strength, so that the largest over the ranks is what all of them do.
enum class StopRequest : int { kNone = 0, kSave = 1, kSaveAndStop = 2 };

// The first statement of main: a signal that comes before it kills the process, and MPI_Init takes
// long enough for that to happen. Also ignores SIGPIPE: a closed stdout or stderr must not end a
// run.
void InstallSignalHandlers();

// The strongest request since the last call. kSave is reported once, kSaveAndStop from then on
// always.
StopRequest PollSignals();

// The strongest request made by files in `run_directory`, which are removed: what has been asked
// once is done once. For one rank to call.
StopRequest PollRequestFiles(const Path& run_directory);

// Under mpirun, ends this process when its parent dies: ranks whose launcher was killed would go on
// computing and writing. Does nothing otherwise. Call before MPI_Init.
void DieWithParent();

}  // namespace syntra
