// SPDX-License-Identifier: Apache-2.0
// Faults on demand, for tests: the environment variable SYNTRA_FAILPOINT is a comma-separated list
// of NAME@STEP or NAME@FIRST-LAST, optionally with :RANK after (the last rank otherwise), where
// steps count from 1 as in the metrics. Names:
//
//   gradient_nan   one element of the rank's gradient is NaN
//   nan_batch      the same, in the step that trains on the batch of that number, counted from 1
//   wrong_parameter
//                  the rank's first parameter is 1 before the step
//   wrong_start    the same, as the run starts or continues after STEP
//   slow_rank      the rank takes 0.1 s longer for its gradients
//   slow_saving    the rank's thread that writes the checkpoint of STEP beside training takes 12 s
//                  longer
//   fail_step      the rank fails in the step, with code 4
//   stop_prepare, stop_evaluation
//                  the rank gets SIGUSR1 in the report of that number while preparing, in the
//                  evaluation after that step
//   freeze_PHASE   the rank stops for good (SIGSTOP) as it enters the watchdog's phase of this
//                  name (not "between"); STEP is that of a step, an evaluation or a save, and 0 for
//                  other phases
//   freeze_saving  the rank stops (SIGSTOP) as its thread begins to write the checkpoint of STEP
//                  beside training
#pragma once

#include <cstdint>
#include <string_view>

namespace syntra {

// Whether `name` is asked for at `step` on `rank` of `ranks`; a hit is logged. Throws
// Error(kConfig) for a variable that does not read as above.
bool Failpoint(std::string_view name, int64_t step, int rank, int ranks);

}  // namespace syntra
