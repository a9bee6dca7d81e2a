#include "core/device.h"

#include <cstring>

namespace syntra {
namespace {

class HostDevice final : public Device {
 public:
  std::string_view name() const override { return "host"; }
  bool is_host() const override { return true; }
  void* stream() const override { return nullptr; }
  Buffer Allocate(size_t bytes, const char* purpose) override { return {bytes, purpose}; }
  Buffer AllocateStaging(size_t bytes, const char* purpose) override { return {bytes, purpose}; }
  void CopyIn(void* to, const void* from, size_t bytes) override { std::memcpy(to, from, bytes); }
  void CopyOut(void* to, const void* from, size_t bytes) override { std::memcpy(to, from, bytes); }
  void Clear(void* data, size_t bytes) override {
    if (bytes > 0) std::memset(data, 0, bytes);
  }
  void Wait() override {}
  std::function<void()> Capture(std::function<void()> enqueue) override { return enqueue; }
};

}  // namespace

Device& Host() {
  static HostDevice host;
  return host;
}

}  // namespace syntra
