// SPDX-License-Identifier: Apache-2.0
// The HDF5 C library with owned handles and errors that name the call and HDF5's own reason.
#pragma once

#include <hdf5.h>

#include <cerrno>
#include <cstdint>
#include <utility>

namespace syntra {

// Call before other HDF5 functions in every public entry point: switches off the calling thread's
// error printing and HDF5's exit handler, which crashes after a failed flush and would hide the
// exit code. Throws Error(kResources) if HDF5 gets no memory for its tables.
void PrepareHdf5();

// An open HDF5 object, closed by the function that belongs to its kind.
class Hdf5Handle {
 public:
  using Closer = herr_t (*)(hid_t);

  Hdf5Handle(hid_t id, Closer closer) : id_(id), closer_(closer) {}
  Hdf5Handle(Hdf5Handle&& other) noexcept
      : id_(std::exchange(other.id_, H5I_INVALID_HID)), closer_(other.closer_) {}
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(closer_, other.closer_);
    return *this;
  }
  ~Hdf5Handle() {
    if (id_ >= 0) closer_(id_);
  }

  hid_t id() const { return id_; }
  // Closes now and reports failure, which the destructor has to swallow.
  void Close();

 private:
  hid_t id_;
  Closer closer_;
};

namespace internal {
[[noreturn]] void Hdf5Failed(const char* call);
// `call`: its text.
template <typename Result>
Result CheckHdf5(Result result, const char* call) {
  if (static_cast<int64_t>(result) < 0) Hdf5Failed(call);
  return result;
}
}  // namespace internal

}  // namespace syntra

// The value of an HDF5 call; a negative one throws Error(kCheckpoint) "HDF5 H5Dopen2: <its
// reason>", or Error(kResources) if memory was refused on the way. HDF5 does not always say so
// among its reasons, but the C library notes it in errno.
#define SYNTRA_HDF5(call) ::syntra::internal::CheckHdf5((errno = 0, (call)), #call)
