// Memory of a processor and the order of work on it: the host's, or a GPU's with one stream of
// work.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

#include "core/buffer.h"

namespace syntra {

// Another order of work on a device, beside the device's own, for what may run at the same time.
class SideStream {
 public:
  virtual ~SideStream() = default;
  SideStream() = default;
  SideStream(const SideStream&) = delete;
  SideStream& operator=(const SideStream&) = delete;

  virtual void* stream() const = 0;
  // What is given here from now on comes after all that was given to the device so far.
  virtual void Fork() = 0;
  // What is given to the device from now on comes after all that was given here so far.
  virtual void Join() = 0;
};

// Copies, clears and kernels run in the order in which they were given. On a GPU these calls only
// give work, unless they say that they wait; what goes wrong with it shows in a later call, as
// Error(kResources).
class Device {
 public:
  virtual ~Device() = default;
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  virtual std::string_view name() const = 0;  // for people
  // Of the hardware: two processes that have the same text share it.
  virtual std::string_view identity() const = 0;
  // Whether the host reads and writes this device's memory directly.
  virtual bool is_host() const = 0;
  // What orders the work: KernelArguments::stream.
  virtual void* stream() const = 0;

  // Zeroed. Throws Error(kResources) naming `purpose` and the sizes when memory cannot be had.
  virtual Buffer Allocate(size_t bytes, const char* purpose) = 0;
  // Of the device's memory, in bytes: what can still be had, and the most that Allocate had handed
  // out at one time.
  virtual size_t free_bytes() const = 0;
  virtual size_t peak_bytes() const = 0;
  // Host memory that copies to and from the device are fast from.
  virtual Buffer AllocateStaging(size_t bytes, const char* purpose) = 0;

  // Gives a copy from host memory, which must not change before the copy is done, or to host
  // memory, where the bytes are not there before.
  virtual void Send(void* to, const void* from, size_t bytes) = 0;
  virtual void Fetch(void* to, const void* from, size_t bytes) = 0;
  // The same, and waits.
  void CopyIn(void* to, const void* from, size_t bytes) {
    Send(to, from, bytes);
    Wait();
  }
  void CopyOut(void* to, const void* from, size_t bytes) {
    Fetch(to, from, bytes);
    Wait();
  }
  virtual void Clear(void* data, size_t bytes) = 0;
  // Waits until everything given so far is done.
  virtual void Wait() = 0;

  // A place in the order of work.
  class Mark {
   public:
    virtual ~Mark() = default;
    virtual void Set() = 0;   // behind what was given so far
    virtual void Wait() = 0;  // until the work before it is done; at once if it was never set
    // From `earlier`, which the same device made, to here: the time of the work between them.
    virtual double SecondsSince(const Mark& earlier) const = 0;
  };
  virtual std::unique_ptr<Mark> MakeMark() = 0;

  // Takes down the work that `enqueue` gives, without doing it. Calling the result gives it as one
  // piece; nothing but that work happens then. Not for the host, which gives no work.
  virtual std::function<void()> Capture(const std::function<void()>& enqueue) = 0;

  // Of high priority, so that what others wait for gets processors. To be closed before the
  // device; not to be forked or joined inside Capture.
  virtual std::unique_ptr<SideStream> OpenSideStream() = 0;
};

Device& Host();

}  // namespace syntra
