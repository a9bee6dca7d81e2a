// SPDX-License-Identifier: Apache-2.0
// Times work on the GPU before a run needs it, on a stream and in memory of its own. Other work may
// run meanwhile, so times are only good for comparison.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "kernels/algorithm_choices.h"
#include "kernels/cuda/check.h"

namespace syntra::gpu {

class Trial {
 public:
  Trial() {
    SYNTRA_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    for (cudaEvent_t& event : events_) SYNTRA_CUDA(cudaEventCreate(&event));
  }
  ~Trial() {
    for (void* memory : memory_) cudaFreeAsync(memory, stream_);
    cudaStreamSynchronize(stream_);
    for (const cudaEvent_t event : events_) cudaEventDestroy(event);
    cudaStreamDestroy(stream_);
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  cudaStream_t stream() const { return stream_; }

  // Memory that lives as long as the trial, with values like those of real operands
  // (MeasuringValues) again and again; null if the GPU does not have enough.
  void* Allocate(size_t bytes) {
    void* memory = nullptr;
    if (cudaMallocAsync(&memory, std::max<size_t>(bytes, 1), stream_) != cudaSuccess) {
      cudaGetLastError();  // No later check must find this error.
      return nullptr;
    }
    memory_.push_back(memory);
    Fill(static_cast<std::byte*>(memory), bytes);
    return memory;
  }

  // Returns, for each of `count` kinds of work, the seconds of the fastest of a few samples, after
  // a run that loads what is needed. The kinds take turns, since the GPU's clock rises while it
  // works. enqueue(i) enqueues work of kind i on the stream. If it returns false, it cannot, and
  // the time is infinite. A sample of short work has several runs, between which the stream does
  // not wait for the host.
  template <typename Enqueue>
  std::vector<double> Seconds(size_t count, const Enqueue& enqueue) {
    constexpr int kSamples = 5;
    constexpr double kMostRuns = 20, kSampleSeconds = 2e-4;
    std::vector<int> runs(count, 0);
    for (size_t i = 0; i < count; ++i) {
      if (!enqueue(i)) continue;
      const double once = Mean(enqueue, i, 1);
      runs[i] = static_cast<int>(std::clamp(kSampleSeconds / once, 1.0, kMostRuns));
    }
    std::vector<double> fastest(count, std::numeric_limits<double>::infinity());
    for (int sample = 0; sample < kSamples; ++sample) {
      for (size_t i = 0; i < count; ++i) {
        if (runs[i] > 0) fastest[i] = std::min(fastest[i], Mean(enqueue, i, runs[i]));
      }
    }
    return fastest;
  }

 private:
  void Fill(std::byte* memory, size_t bytes) {
    constexpr size_t kValues = 1 << 19;
    static const std::vector<BFloat16> values = MeasuringValues(kValues);
    size_t filled = std::min(bytes, kValues * sizeof(BFloat16));
    SYNTRA_CUDA(cudaMemcpyAsync(memory, values.data(), filled, cudaMemcpyHostToDevice, stream_));
    while (filled < bytes) {
      const size_t more = std::min(filled, bytes - filled);
      SYNTRA_CUDA(
          cudaMemcpyAsync(memory + filled, memory, more, cudaMemcpyDeviceToDevice, stream_));
      filled += more;
    }
  }

  template <typename Enqueue>
  double Mean(const Enqueue& enqueue, size_t kind, int runs) {
    SYNTRA_CUDA(cudaEventRecord(events_[0], stream_));
    for (int i = 0; i < runs; ++i) enqueue(kind);
    SYNTRA_CUDA(cudaEventRecord(events_[1], stream_));
    SYNTRA_CUDA(cudaEventSynchronize(events_[1]));
    float milliseconds = 0;
    SYNTRA_CUDA(cudaEventElapsedTime(&milliseconds, events_[0], events_[1]));
    return std::max(1e-3 * static_cast<double>(milliseconds) / runs, 1e-9);
  }

  cudaStream_t stream_ = nullptr;
  cudaEvent_t events_[2] = {};
  std::vector<void*> memory_;
};

}  // namespace syntra::gpu
