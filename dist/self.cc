// SPDX-License-Identifier: Apache-2.0
#include "dist/self.h"

#include <unistd.h>

#include "base/log.h"

namespace syntra {

// The views are checked as the other communicators check them, so that a mistake shows with one
// rank.
void SelfCommunicator::AllReduceSum(TensorView view) {
  SYNTRA_CHECK(view.type.dtype == DType::kF32, "sum of {}", ToString(view.type));
}
void SelfCommunicator::ReduceScatter(TensorView view, const Shares& shares) {
  CheckShares(view, shares);
  AllReduceSum(view);
}
void SelfCommunicator::AllGather(TensorView view, const Shares& shares) {
  CheckShares(view, shares);
}
void SelfCommunicator::Broadcast(TensorView, int root) {
  SYNTRA_CHECK(root == 0, "broadcast from rank {} of 1", root);
}

void SelfCommunicator::Abort(ExitCode code) {
  Log().flush();
  _exit(static_cast<int>(code));
}

}  // namespace syntra
