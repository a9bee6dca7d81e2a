// SPDX-License-Identifier: Apache-2.0
#include "core/device.h"

#include <chrono>
#include <cstring>
#include <limits>

#include "base/clock.h"
#include "base/error.h"
#include "base/host.h"

namespace syntra {
namespace {

// Where work is done as it is given.
class ClockEvent final : public Device::Event {
 public:
  void Record() override { at_ = Clock::now(); }
  void Wait() override {}
  double SecondsSince(const Event& earlier) const override {
    return std::chrono::duration<double>(at_ - static_cast<const ClockEvent&>(earlier).at_).count();
  }

 private:
  Clock::time_point at_;
};

// The host's work is done when it is given.
class HostSideStream final : public SideStream {
 public:
  void* stream() const override { return nullptr; }
  void Fork() override {}
  void Join() override {}
  void Mark() override {}
  void JoinMark() override {}
};

class HostDevice final : public Device {
 public:
  std::string_view name() const override { return "host"; }
  std::string_view identity() const override { return identity_; }
  bool is_host() const override { return true; }
  void* stream() const override { return nullptr; }
  Buffer Allocate(size_t bytes, const char* purpose) override { return {bytes, purpose}; }
  // The system decides, and other allocations count as much.
  size_t free_bytes() const override { return std::numeric_limits<size_t>::max(); }
  size_t peak_bytes() const override { return 0; }
  Buffer AllocateStaging(size_t bytes, const char* purpose) override { return {bytes, purpose}; }
  void Send(void* to, const void* from, size_t bytes) override { Copy(to, from, bytes); }
  void Fetch(void* to, const void* from, size_t bytes) override { Copy(to, from, bytes); }
  void Clear(void* data, size_t bytes) override {
    if (bytes > 0) std::memset(data, 0, bytes);
  }
  void Wait() override {}
  std::unique_ptr<Event> MakeEvent() override { return std::make_unique<ClockEvent>(); }
  std::function<void()> Capture(const std::function<void()>&) override {
    Fail(ExitCode::kInternal, "the host device cannot capture work");
  }
  std::unique_ptr<SideStream> OpenSideStream() override {
    return std::make_unique<HostSideStream>();
  }

 private:
  static void Copy(void* to, const void* from, size_t bytes) {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }

  const std::string identity_ = HostName();
};

}  // namespace

Device& Host() {
  static HostDevice host;
  return host;
}

}  // namespace syntra
