// SPDX-License-Identifier: Apache-2.0
// A processor's memory, and the order in which it executes work: the host, or a GPU with one main
// stream.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

#include "core/buffer.h"

namespace syntra {

// A second stream of a device, for work that may run beside the main stream's.
class SideStream {
 public:
  virtual ~SideStream() = default;
  SideStream() = default;
  SideStream(const SideStream&) = delete;
  SideStream& operator=(const SideStream&) = delete;

  virtual void* stream() const = 0;
  // Work enqueued here from now on runs after everything that was enqueued on the device so far.
  virtual void Fork() = 0;
  // Work enqueued on the device from now on runs after everything that was enqueued here so far.
  virtual void Join() = 0;
  // Remembers the present point of this stream.
  virtual void Mark() = 0;
  // As Join, but only for the work up to the oldest mark, which is then forgotten.
  virtual void JoinMark() = 0;
};

// Copies, clears and kernels run in the order in which they were enqueued. On a GPU these calls
// only enqueue work and return, unless they say that they wait. If enqueued work fails, a later
// call throws an Error: kInternal if a kernel is at fault, else kResources.
class Device {
 public:
  virtual ~Device() = default;
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  virtual std::string_view name() const = 0;  // for people
  // The identity of the hardware: two processes that get the same text share it.
  virtual std::string_view identity() const = 0;
  // Whether the host can read and write this device's memory directly.
  virtual bool is_host() const = 0;
  // The main stream, for KernelArguments::stream; null on the host.
  virtual void* stream() const = 0;

  // Zeroed. Throws Error(kResources) naming `purpose` and the sizes when memory cannot be had.
  virtual Buffer Allocate(size_t bytes, const char* purpose) = 0;
  // Bytes of the device's memory that are free, and the most that Allocate had handed out at one
  // time.
  virtual size_t free_bytes() const = 0;
  virtual size_t peak_bytes() const = 0;
  // Host memory from which copies to and from the device are fast (pinned).
  virtual Buffer AllocateStaging(size_t bytes, const char* purpose) = 0;

  // Send enqueues a copy from host memory, Fetch one to host memory. The host must leave its side
  // alone until the copy is done.
  virtual void Send(void* to, const void* from, size_t bytes) = 0;
  virtual void Fetch(void* to, const void* from, size_t bytes) = 0;
  // As Send and Fetch, but these wait until the copy is done.
  void CopyIn(void* to, const void* from, size_t bytes) {
    Send(to, from, bytes);
    Wait();
  }
  void CopyOut(void* to, const void* from, size_t bytes) {
    Fetch(to, from, bytes);
    Wait();
  }
  virtual void Clear(void* data, size_t bytes) = 0;
  // Waits until everything enqueued so far is done.
  virtual void Wait() = 0;

  // A point in the main stream, as a CUDA event.
  class Event {
   public:
    virtual ~Event() = default;
    virtual void Record() = 0;  // after everything enqueued so far
    virtual void Wait() = 0;  // until the work before it is done; returns at once if never recorded
    // Seconds that the work between `earlier`, an event of the same device, and this one took.
    virtual double SecondsSince(const Event& earlier) const = 0;
  };
  virtual std::unique_ptr<Event> MakeEvent() = 0;

  // Captures the work that `enqueue` enqueues, without running it, as a CUDA graph does. Each call
  // of the result enqueues all of it at once. Not for the host, which has no queue.
  virtual std::function<void()> Capture(const std::function<void()>& enqueue) = 0;

  // A stream whose work has high priority: other ranks may be waiting for it. Close it before the
  // device, and neither fork nor join it inside Capture.
  virtual std::unique_ptr<SideStream> OpenSideStream() = 0;
};

Device& Host();

}  // namespace syntra
