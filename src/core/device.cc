#include "core/device.h"

#include <cstring>

#include "base/host.h"

namespace syntra {
namespace {

// The host's work is done when it is given.
class HostSideStream final : public SideStream {
 public:
  void* stream() const override { return nullptr; }
  void Fork() override {}
  void Join() override {}
};

class HostDevice final : public Device {
 public:
  std::string_view name() const override { return "host"; }
  std::string_view identity() const override { return identity_; }
  bool is_host() const override { return true; }
  void* stream() const override { return nullptr; }
  Buffer Allocate(size_t bytes, const char* purpose) override { return {bytes, purpose}; }
  Buffer AllocateStaging(size_t bytes, const char* purpose) override { return {bytes, purpose}; }
  void Send(void* to, const void* from, size_t bytes) override { Copy(to, from, bytes); }
  void Fetch(void* to, const void* from, size_t bytes) override { Copy(to, from, bytes); }
  void Clear(void* data, size_t bytes) override {
    if (bytes > 0) std::memset(data, 0, bytes);
  }
  void Wait() override {}
  std::unique_ptr<Mark> MakeMark() override {
    struct Passed final : Mark {
      void Set() override {}
      void Wait() override {}
    };
    return std::make_unique<Passed>();
  }
  std::function<void()> Capture(std::function<void()> enqueue) override { return enqueue; }
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
