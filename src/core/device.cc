#include "core/device.h"

#include <cstring>

#include "base/error.h"

namespace syntra {
namespace {

class HostDevice final : public Device {
 public:
  std::string_view name() const override { return "host"; }
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
  std::function<void()> Capture(const std::function<void()>&) override {
    Fail(ExitCode::kInternal, "work of the host cannot be taken down");
  }

 private:
  static void Copy(void* to, const void* from, size_t bytes) {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
};

}  // namespace

Device& Host() {
  static HostDevice host;
  return host;
}

}  // namespace syntra
