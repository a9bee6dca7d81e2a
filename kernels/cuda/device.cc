// SPDX-License-Identifier: Apache-2.0
// The GPU as a device: memory, one stream, CUDA graphs.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <vector>

#include "base/text.h"
#include "kernels/cuda.h"
#include "kernels/cuda/backend.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/cublas.h"

namespace syntra {
namespace {

std::string VersionText(int version) { return version == 0 ? "none" : CudaVersionText(version); }

int DriverVersion() {
  int version = 0;
  return cudaDriverGetVersion(&version) == cudaSuccess ? version : 0;
}

int RuntimeVersion() {
  int version = 0;
  return cudaRuntimeGetVersion(&version) == cudaSuccess ? version : 0;
}

std::string Bytes(size_t bytes) { return HumanBytes(static_cast<double>(bytes)); }

void Destroy(cudaGraph_t graph) { cudaGraphDestroy(graph); }

// Captured work, which can be launched until it is destroyed.
class Graph {
 public:
  Graph(cudaGraph_t graph, cudaStream_t stream) : stream_(stream) {
    SYNTRA_CUDA(cudaGraphInstantiate(&graph_, graph, 0));
    // Uploads the graph now, so that the first launch is as fast as the others.
    SYNTRA_CUDA(cudaGraphUpload(graph_, stream));
  }
  ~Graph() { cudaGraphExecDestroy(graph_); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void Launch() const { SYNTRA_CUDA(cudaGraphLaunch(graph_, stream_)); }

 private:
  cudaGraphExec_t graph_ = nullptr;
  cudaStream_t stream_;
};

class CudaEvent final : public Device::Event {
 public:
  explicit CudaEvent(cudaStream_t stream) : stream_(stream) {
    SYNTRA_CUDA(cudaEventCreate(&event_));
  }
  ~CudaEvent() override { cudaEventDestroy(event_); }
  void Record() override { SYNTRA_CUDA(cudaEventRecord(event_, stream_)); }
  void Wait() override { SYNTRA_CUDA(cudaEventSynchronize(event_)); }
  double SecondsSince(const Event& earlier) const override {
    float milliseconds = 0;
    SYNTRA_CUDA(
        cudaEventElapsedTime(&milliseconds, static_cast<const CudaEvent&>(earlier).event_, event_));
    return 1e-3 * milliseconds;
  }

 private:
  cudaStream_t stream_;
  cudaEvent_t event_ = nullptr;
};

class GpuSideStream final : public SideStream {
 public:
  explicit GpuSideStream(cudaStream_t main) : main_(main) {
    int lowest = 0, highest = 0;
    SYNTRA_CUDA(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
    SYNTRA_CUDA(cudaEventCreateWithFlags(&reached_, cudaEventDisableTiming));
    SYNTRA_CUDA(cudaStreamCreateWithPriority(&side_, cudaStreamNonBlocking, highest));
  }
  ~GpuSideStream() override {
    cudaStreamDestroy(side_);
    cudaEventDestroy(reached_);
    for (const cudaEvent_t mark : marks_) cudaEventDestroy(mark);
    for (const cudaEvent_t mark : spare_) cudaEventDestroy(mark);
  }

  void* stream() const override { return side_; }
  void Fork() override { Order(main_, side_); }
  void Join() override { Order(side_, main_); }
  void Mark() override {
    if (spare_.empty()) {
      SYNTRA_CUDA(cudaEventCreateWithFlags(&spare_.emplace_back(), cudaEventDisableTiming));
    }
    marks_.push_back(spare_.back());
    spare_.pop_back();
    SYNTRA_CUDA(cudaEventRecord(marks_.back(), side_));
  }
  void JoinMark() override {
    SYNTRA_CHECK(!marks_.empty(), "a stream without a mark");
    SYNTRA_CUDA(cudaStreamWaitEvent(main_, marks_.front(), 0));
    spare_.push_back(marks_.front());
    marks_.pop_front();
  }

 private:
  // A waiting stream waits for the event's latest record at the time of the call, so one event can
  // be reused.
  void Order(cudaStream_t first, cudaStream_t then) {
    SYNTRA_CUDA(cudaEventRecord(reached_, first));
    SYNTRA_CUDA(cudaStreamWaitEvent(then, reached_, 0));
  }

  cudaStream_t main_;
  cudaStream_t side_ = nullptr;
  cudaEvent_t reached_ = nullptr;
  std::deque<cudaEvent_t> marks_;
  std::vector<cudaEvent_t> spare_;
};

class GpuDevice final : public Device {
 public:
  explicit GpuDevice(int index) {
    SYNTRA_CUDA(cudaSetDevice(index));
    cudaDeviceProp properties;
    SYNTRA_CUDA(cudaGetDeviceProperties(&properties, index));
    name_ = fmt::format("{} (GPU {})", properties.name, index);
    for (const char byte : properties.uuid.bytes) {
      identity_ += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    }
    RequireCapability(name_, properties.major, properties.minor);
    RequireDriver(name_, DriverVersion());
    SYNTRA_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  ~GpuDevice() override { cudaStreamDestroy(stream_); }

  std::string_view name() const override { return name_; }
  std::string_view identity() const override { return identity_; }
  bool is_host() const override { return false; }
  void* stream() const override { return stream_; }

  Buffer Allocate(size_t bytes, const char* purpose) override {
    if (bytes == 0) return {};
    void* data = nullptr;
    if (const cudaError_t status = cudaMalloc(&data, bytes); status != cudaSuccess) {
      size_t free = 0, total = 0;
      cudaMemGetInfo(&free, &total);
      Fail(ExitCode::kResources, "{} has no {} for {}: {} of its {} are free ({})", name_,
           Bytes(bytes), purpose, Bytes(free), Bytes(total), cudaGetErrorString(status));
    }
    use_->Add(bytes);
    Buffer buffer(static_cast<std::byte*>(data), bytes,
                  [use = use_](std::byte* memory, size_t size) {
                    cudaFree(memory);
                    use->now -= size;
                  });
    Clear(data, bytes);
    return buffer;
  }

  Buffer AllocateStaging(size_t bytes, const char* purpose) override {
    if (bytes == 0) return {};
    void* data = nullptr;
    if (const cudaError_t status = cudaMallocHost(&data, bytes); status != cudaSuccess) {
      Fail(ExitCode::kResources, "cannot get {} of page-locked host memory for {}: {}",
           Bytes(bytes), purpose, cudaGetErrorString(status));
    }
    return {static_cast<std::byte*>(data), bytes,
            [](std::byte* memory, size_t) { cudaFreeHost(memory); }};
  }

  size_t free_bytes() const override {
    size_t free = 0, total = 0;
    SYNTRA_CUDA(cudaMemGetInfo(&free, &total));
    return free;
  }
  size_t peak_bytes() const override { return use_->most; }

  void Send(void* to, const void* from, size_t bytes) override {
    SYNTRA_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_));
  }
  void Fetch(void* to, const void* from, size_t bytes) override {
    SYNTRA_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_));
  }
  void Clear(void* data, size_t bytes) override {
    if (bytes > 0) SYNTRA_CUDA(cudaMemsetAsync(data, 0, bytes, stream_));
  }
  void Wait() override { SYNTRA_CUDA(cudaStreamSynchronize(stream_)); }

  std::unique_ptr<Event> MakeEvent() override { return std::make_unique<CudaEvent>(stream_); }

  std::function<void()> Capture(const std::function<void()>& enqueue) override {
    cudaGraph_t graph = nullptr;
    SYNTRA_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
    try {
      enqueue();
    } catch (...) {
      cudaStreamEndCapture(stream_, &graph);
      Destroy(graph);
      throw;
    }
    SYNTRA_CUDA(cudaStreamEndCapture(stream_, &graph));
    const std::unique_ptr<CUgraph_st, void (*)(cudaGraph_t)> owned(graph, &Destroy);
    return [work = std::make_shared<Graph>(graph, stream_)] { work->Launch(); };
  }

  std::unique_ptr<SideStream> OpenSideStream() override {
    return std::make_unique<GpuSideStream>(stream_);
  }

 private:
  // Shared with the buffers, which may outlive the device.
  struct Use {
    size_t now = 0, most = 0;
    void Add(size_t bytes) { most = std::max(most, now += bytes); }
  };

  std::string name_, identity_;
  cudaStream_t stream_ = nullptr;
  std::shared_ptr<Use> use_ = std::make_shared<Use>();
};

// Why cudaGetDeviceCount found nothing.
std::string Explain(cudaError_t status) {
  const int driver = DriverVersion();
  if (driver == 0) {
    return "no NVIDIA driver (libcuda.so.1) is installed, or it cannot be loaded here";
  }
  if (status == cudaErrorInsufficientDriver) {
    return fmt::format(
        "the NVIDIA driver is too old: it supports CUDA {}, this build needs {}; update the driver "
        "or build with an older toolkit",
        VersionText(driver), VersionText(RuntimeVersion()));
  }
  if (status == cudaErrorNoDevice) return "the NVIDIA driver shows no GPU to this process";
  return fmt::format("CUDA cannot start: {} ({})", cudaGetErrorString(status),
                     cudaGetErrorName(status));
}

std::string Describe(int index) {
  cudaDeviceProp properties;
  if (cudaGetDeviceProperties(&properties, index) != cudaSuccess) return "unknown";
  return fmt::format("{}, compute capability {}.{}, {} processors, {}", properties.name,
                     properties.major, properties.minor, properties.multiProcessorCount,
                     Bytes(properties.totalGlobalMem));
}

std::string AddressOf(int index) {
  char address[32] = "";
  return cudaDeviceGetPCIBusId(address, sizeof address, index) == cudaSuccess ? address : "";
}

// Whether the user has hidden the GPUs from this process on purpose.
bool Hidden() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible && (*visible == '\0' || *visible == '-');
}

}  // namespace

namespace internal {
void CudaFailed(cudaError_t status, const char* call) {
  const auto fail = [&](const std::string& advice, ExitCode code = ExitCode::kResources) {
    Fail(code, "{}: {} ({}){}", call, cudaGetErrorString(status), cudaGetErrorName(status), advice);
  };
  switch (status) {
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
      return fail(
          "; this build has no code for this GPU: build without CMAKE_CUDA_ARCHITECTURES, which "
          "gives code for compute capability 8.0 and newer");
    case cudaErrorUnsupportedPtxVersion:
      return fail("; update the NVIDIA driver, or build with -DCMAKE_CUDA_ARCHITECTURES=native");
    case cudaErrorDevicesUnavailable:
      return fail("; another process uses the GPU alone (nvidia-smi shows its compute mode)");
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidConfiguration:
    case cudaErrorInvalidPc:
    case cudaErrorInvalidResourceHandle:
    case cudaErrorInvalidValue:
    case cudaErrorLaunchFailure:
    case cudaErrorMisalignedAddress:
    case cudaErrorStreamCaptureImplicit:
    case cudaErrorStreamCaptureInvalidated:
    case cudaErrorStreamCaptureUnsupported:
      return fail("", ExitCode::kInternal);
    default:
      return fail("");
  }
}
}  // namespace internal

GpuReport FindGpus() {
  GpuReport report;
  report.versions = fmt::format("driver's CUDA {}, runtime {}", VersionText(DriverVersion()),
                                VersionText(RuntimeVersion()));
  const cudaError_t status = cudaGetDeviceCount(&report.count);
  if (status != cudaSuccess) {
    report.count = 0;
    report.problem = Explain(status);
    report.broken = !Hidden() && std::filesystem::exists("/dev/nvidiactl");
    cudaGetLastError();
  }
  for (int i = 0; i < report.count; ++i) {
    report.facts.push_back(Describe(i));
    report.addresses.push_back(AddressOf(i));
  }
  return report;
}

std::string CublasLtVersion() {
  try {
    const size_t version = gpu::Cublas().cublasLtGetVersion();
    return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
  } catch (const Error& error) {
    return error.what();
  }
}

std::unique_ptr<Backend> OpenGpu(int index) {
  return std::make_unique<CudaBackend>(std::make_unique<GpuDevice>(index));
}

}  // namespace syntra
