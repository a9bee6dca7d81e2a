// Memory of a processor and the order of work on it: the host's, or a GPU's with one stream of
// work.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "core/buffer.h"

namespace syntra {

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
  // Whether the host reads and writes this device's memory directly.
  virtual bool is_host() const = 0;
  // What orders the work: KernelArguments::stream.
  virtual void* stream() const = 0;

  // Zeroed. Throws Error(kResources) naming `purpose` and the sizes when memory cannot be had.
  virtual Buffer Allocate(size_t bytes, const char* purpose) = 0;
  // Host memory that copies to and from the device are fast from.
  virtual Buffer AllocateStaging(size_t bytes, const char* purpose) = 0;

  // `from` is host memory; waits until it may change.
  virtual void CopyIn(void* to, const void* from, size_t bytes) = 0;
  // `to` is host memory; waits until the bytes are there.
  virtual void CopyOut(void* to, const void* from, size_t bytes) = 0;
  virtual void Clear(void* data, size_t bytes) = 0;
  // Waits until everything given so far is done.
  virtual void Wait() = 0;

  // Takes down the work that `enqueue` gives, without doing it. Calling the result gives it as one
  // piece; nothing but that work happens then. The host, which has no such thing, returns
  // `enqueue` itself.
  virtual std::function<void()> Capture(std::function<void()> enqueue) = 0;
};

Device& Host();

}  // namespace syntra
