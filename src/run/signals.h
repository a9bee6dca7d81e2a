// SPDX-License-Identifier: Apache-2.0
// Requests to save and to stop that reach a running job: signals and files in the run directory.
//
//   SIGUSR1, SIGTERM, SIGINT, SIGHUP, SIGXCPU, file STOP   save and exit with code 75 (kRequeue)
//   SIGUSR2, file SAVE                                     save and go on
//
// Handlers only set flags; the run polls (requests.h) and combines the flags of all ranks, so all
// save at the same step even if one rank got the signal. A second ^C means now: SIGINT within 5 s
// of another INT or TERM ends the process at once with 128 + SIGINT. A repeated SIGTERM changes
// nothing: where Slurm preempts without grace it sends two of them at once and kills much later.
// Nor does SIGHUP, which a closed terminal and its shell may both send, nor SIGXCPU, which the
// kernel sends every second from the soft limit of processor time on to the hard one.
//
// A command that does not look for requests must not install the handlers: signals then end it.
#pragma once

#include "base/file.h"

namespace syntra {

// In order of strength, so that the largest over the ranks is what all of them do.
enum class StopRequest : int { kNone = 0, kSave = 1, kSaveAndStop = 2 };

// Call before anything that takes long: a signal that meets no handler ends the process. A SIGHUP
// that is ignored already (nohup) stays ignored. `answer`, a line that lives as long as the
// process, is shown at each ^C that is a request: until it is met may take a while.
void InstallSignalHandlers(const char* answer = nullptr);

// `restore`, if it is not null, is called before a second ^C ends the process. It must be safe in a
// signal handler.
void SetRestore(void (*restore)());

// The message for users who have pressed ^C once.
inline constexpr char kStopping[] =
    "Saving, then stopping. Press ^C again within 5 s to stop at once and lose unsaved work.\n";

// Makes writing to a closed stdout or stderr fail with an error, instead of ending the process.
void IgnoreBrokenPipes();

// The strongest request since the last call. kSave is reported once, kSaveAndStop from then on
// always.
StopRequest PollSignals();

// The strongest request made by files in `run_directory`, which are removed: what has been asked
// once is done once. One that cannot be removed is obeyed when this process first finds it. For one
// rank to call.
StopRequest PollRequestFiles(const Path& run_directory);

// Under mpirun, ends this process when its parent dies: ranks whose launcher was killed would go on
// computing and writing. Does nothing otherwise. Call before MPI_Init.
void DieWithParent();

}  // namespace syntra
