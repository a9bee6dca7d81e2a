// SPDX-License-Identifier: Apache-2.0
#include "tests/simt/device.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>

#include "base/clock.h"
#include "base/host.h"
#include "base/text.h"
#include "kernels/cuda.h"
#include "kernels/cuda/backend.h"
#include "tests/simt/access_check.h"
#include "tests/simt/simt.h"

namespace syntra {
namespace simt {

void Give(void* stream, std::function<void()> work) {
  if (stream == nullptr) return work();
  static_cast<Stream*>(stream)->given.push_back(std::move(work));
}

namespace {

int64_t Number(const char* variable, int64_t otherwise) {
  int64_t value = otherwise;
  if (const char* text = std::getenv(variable)) ParseInt64(text, &value);
  return value;
}

constexpr size_t kPage = 4096;

// The buffers share it, since they may outlive the device.
class Memory {
 public:
  explicit Memory(size_t bytes) : free_(bytes), total_(bytes) {}

  std::byte* Take(size_t bytes, const char* purpose) {
    const size_t size = AlignUp(bytes, kPage);
    void* data = size > free_ ? MAP_FAILED
                              : mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) {
      const auto text = [](size_t n) { return HumanBytes(static_cast<double>(n)); };
      Fail(ExitCode::kResources, "the simulated GPU has no {} for {}: {} of its {} are free",
           text(bytes), purpose, text(free_), text(total_));
    }
    free_ -= size;
    sizes_[data] = size;
    return static_cast<std::byte*>(data);
  }
  void GiveBack(void* data) {
    free_ += sizes_.at(data);
    munmap(data, sizes_.at(data));
    sizes_.erase(data);
  }
  size_t free_bytes() const { return free_; }
  size_t total_bytes() const { return total_; }
  void Protect(int protection) {
    for (const auto& [data, size] : sizes_) mprotect(data, size, protection);
  }

 private:
  size_t free_, total_;
  std::map<void*, size_t> sizes_;
};

class SimtDevice;

class SimtSideStream final : public SideStream {
 public:
  SimtSideStream(SimtDevice& device, bool early) : device_(device), early_(early) {}
  void* stream() const override { return &stream_; }
  void Fork() override;
  void Join() override { JoinFirst(stream_.given.size()); }
  void Mark() override { marks_.push_back(joined_ + stream_.given.size()); }
  void JoinMark() override;

 private:
  // So many works of those that wait here.
  void JoinFirst(size_t count);

  SimtDevice& device_;
  bool early_;
  mutable Stream stream_;
  size_t joined_ = 0;         // works so far
  std::deque<size_t> marks_;  // each after so many works
};

class SimtDevice final : public Device {
 public:
  explicit SimtDevice(int index)
      : identity_(fmt::format("GPU {} of {}", index, HostName())),
        memory_(std::make_shared<Memory>(Number("SYNTRA_SIMT_MEMORY", int64_t{4} << 30))) {
    SetCapability(static_cast<int>(Number("SYNTRA_SIMT_CAPABILITY", 90)));
    RequireCapability(name(), Capability() / 10, Capability() % 10);
    RequireDriver(name(), static_cast<int>(Number("SYNTRA_SIMT_DRIVER", 12010)));
  }

  std::string_view name() const override { return "the simulated GPU"; }
  std::string_view identity() const override { return identity_; }
  bool is_host() const override { return false; }
  void* stream() const override { return &stream_; }

  Buffer Allocate(size_t bytes, const char* purpose) override {
    if (bytes == 0) return {};
    return {memory_->Take(bytes, purpose), bytes,
            [memory = memory_](std::byte* data, size_t) { memory->GiveBack(data); }};
  }
  size_t free_bytes() const override { return memory_->free_bytes(); }
  size_t peak_bytes() const override { return memory_->total_bytes() - memory_->free_bytes(); }
  Buffer AllocateStaging(size_t bytes, const char* purpose) override { return {bytes, purpose}; }

  void Send(void* to, const void* from, size_t bytes) override { Copy(to, from, bytes); }
  void Fetch(void* to, const void* from, size_t bytes) override { Copy(to, from, bytes); }
  void Clear(void* data, size_t bytes) override {
    if (bytes > 0) Give(&stream_, [=] { std::memset(data, 0, bytes); });
  }
  void Wait() override {
    RefuseInCapture();
    Do(stream_);
  }

  // A wait for a part of the work does all of it. Its time is that at which the work is done.
  std::unique_ptr<Event> MakeEvent() override {
    struct LateEvent final : Event {
      explicit LateEvent(SimtDevice& owner) : device(owner) {}
      void Record() override {
        Give(&device.stream_, [time = time] { *time = Clock::now(); });
      }
      void Wait() override { device.Wait(); }
      double SecondsSince(const Event& earlier) const override {
        const auto duration = *time - *static_cast<const LateEvent&>(earlier).time;
        return std::chrono::duration<double>(duration).count();
      }
      SimtDevice& device;
      std::shared_ptr<Clock::time_point> time = std::make_shared<Clock::time_point>();
    };
    return std::make_unique<LateEvent>(*this);
  }

  std::function<void()> Capture(const std::function<void()>& enqueue) override {
    Wait();
    stream_.capturing = true;
    enqueue();
    stream_.capturing = false;
    return [this, works = std::exchange(stream_.given, {})] {
      stream_.given.insert(stream_.given.end(), works.begin(), works.end());
    };
  }

  std::unique_ptr<SideStream> OpenSideStream() override {
    const char* when = std::getenv("SYNTRA_SIMT_SIDE");
    return std::make_unique<SimtSideStream>(*this, when && std::string_view(when) == "early");
  }

  void RefuseInCapture() const {
    SYNTRA_CHECK(!stream_.capturing, "waiting for work that is taken down");
  }
  void Do(Stream& stream) {
    // Programs run the same kernels many times, so only the tests of kernels look for races.
    const access_check::Unchecked unchecked;
    memory_->Protect(PROT_READ | PROT_WRITE);
    for (const auto& work : std::exchange(stream.given, {})) work();
    memory_->Protect(PROT_NONE);
    const std::string complaints = TakeComplaints();
    SYNTRA_CHECK(complaints.empty(), "kernels went wrong:\n{}", complaints);
  }

 private:
  void Copy(void* to, const void* from, size_t bytes) {
    if (bytes > 0) Give(&stream_, [=] { std::memcpy(to, from, bytes); });
  }

  std::string identity_;
  std::shared_ptr<Memory> memory_;
  mutable Stream stream_;
};

void SimtSideStream::Fork() {
  device_.RefuseInCapture();
  if (early_) device_.Wait();
}

void SimtSideStream::JoinMark() {
  SYNTRA_CHECK(!marks_.empty(), "a stream without a mark");
  // All of it may have been joined meanwhile.
  JoinFirst(std::max(marks_.front(), joined_) - joined_);
  marks_.pop_front();
}

void SimtSideStream::JoinFirst(size_t count) {
  device_.RefuseInCapture();
  const auto end = stream_.given.begin() + static_cast<std::ptrdiff_t>(count);
  Stream first;
  first.given.assign(stream_.given.begin(), end);
  stream_.given.erase(stream_.given.begin(), end);
  joined_ += count;
  if (early_) return device_.Do(first);
  // The main stream continues after this work. Work that is enqueued here later is not part of it.
  Give(device_.stream(), [works = std::move(first.given)] {
    for (const auto& work : works) work();
  });
}

}  // namespace
}  // namespace simt

GpuReport FindGpus() {
  GpuReport report;
  report.count = static_cast<int>(simt::Number("SYNTRA_SIMT_GPUS", 1));
  if (report.count == 0) report.problem = "SYNTRA_SIMT_GPUS hides the simulated GPU";
  report.facts.assign(report.count, "threads as fibers, for tests");
  report.addresses.assign(report.count, "");
  return report;
}

std::string CublasLtVersion() { return "simulated"; }

std::unique_ptr<Backend> OpenGpu(int index) {
  return std::make_unique<CudaBackend>(std::make_unique<simt::SimtDevice>(index));
}

}  // namespace syntra
