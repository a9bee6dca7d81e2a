// SPDX-License-Identifier: Apache-2.0
// Errors that all ranks throw together.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"

namespace syntra {

// An error that every rank throws at the same point, so that collective calls still work after it.
class CommonError : public Error {
 public:
  using Error::Error;
};

// Too many steps were bad, or an evaluation is not finite. The run cannot go on from here, but
// perhaps from an earlier checkpoint.
class Divergence : public CommonError {
 public:
  Divergence(int64_t first_bad_step, const std::string& message)
      : CommonError(ExitCode::kDiverged, message), first_bad_step_(first_bad_step) {}
  // Checkpoints from it on may be as bad.
  int64_t first_bad_step() const { return first_bad_step_; }

 private:
  int64_t first_bad_step_;
};

}  // namespace syntra
