#include "dist/self.h"

#include <unistd.h>

#include "base/log.h"

namespace syntra {

// The views are checked as the other communicators check them, so that a mistake shows with one
// rank.
void SelfCommunicator::AllReduceSum(TensorView view) { view.As<float>(); }
void SelfCommunicator::ReduceScatter(TensorView view) { view.As<float>(); }
void SelfCommunicator::AllGather(TensorView view) {
  SYNTRA_CHECK(view.device == Device::kHost, "all-gather of a view in device memory");
}
void SelfCommunicator::Broadcast(TensorView view, int root) {
  SYNTRA_CHECK(view.device == Device::kHost && root == 0, "broadcast from rank {} of 1", root);
}

void SelfCommunicator::Abort(ExitCode code) {
  Log().flush();
  _exit(static_cast<int>(code));
}

}  // namespace syntra
