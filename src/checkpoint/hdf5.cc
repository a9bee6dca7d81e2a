// SPDX-License-Identifier: Apache-2.0
// Error text and process-wide settings of the HDF5 C library.
#include "checkpoint/hdf5.h"

#include <string>
#include <string_view>

#include "base/crash_guard.h"
#include "base/failure.h"

namespace syntra {
namespace {

// Adds one entry of HDF5's error stack, outermost first.
herr_t AddReason(unsigned, const H5E_error2_t* entry, void* data) {
  auto& reasons = *static_cast<std::string*>(data);
  if (!entry->desc || !*entry->desc) return 0;
  if (!reasons.empty()) reasons += "; ";
  reasons += entry->desc;
  return 0;
}

}  // namespace

void PrepareHdf5() {
  static const herr_t without_exit_handler = H5dont_atexit();
  // A second library in the process may have used HDF5 first; only its exit handling is lost then.
  static_cast<void>(without_exit_handler);
  // Where memory is short, it is here that HDF5 may miss some, and nothing of it works afterwards.
  static const herr_t opened = SYNTRA_HDF5(H5open());
  static_cast<void>(opened);
  // The automatic printing is a setting of each thread.
  thread_local const herr_t silent = H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  static_cast<void>(silent);
}

void Hdf5Handle::Close() {
  const hid_t id = std::exchange(id_, H5I_INVALID_HID);
  errno = 0;
  if (closer_(id) < 0) internal::Hdf5Failed("close");
}

namespace internal {

void Hdf5Failed(const char* call) {
  // A FrameWriter makes files in memory, which fails only if memory is short. HDF5 1.14 does not
  // always leave errno as it was.
  const bool out_of_memory = errno == ENOMEM || ShortageGuard::Exists();
  std::string reasons;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, AddReason, &reasons);
  const std::string_view text = call;
  const std::string_view function = text.substr(0, text.find('('));
  if (reasons.empty()) reasons = "failed";
  if (out_of_memory) {
    throw OutOfMemory(fmt::format("out of memory in HDF5's {}: {}", function, reasons));
  }
  Fail(ExitCode::kCheckpoint, "HDF5 {}: {}", function, reasons);
}

}  // namespace internal
}  // namespace syntra
