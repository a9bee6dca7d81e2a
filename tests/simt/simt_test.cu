// SPDX-License-Identifier: Apache-2.0
// Tests of the simulated GPU: kernels that it must run, and mistakes that it must find.
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <vector>

#include "kernels/cuda.h"
#include "kernels/cuda/attention/forward_hopper.h"
#include "kernels/cuda/attention/one_pass_grad_hopper.h"
#include "kernels/cuda/attention/two_pass_grad_hopper.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/reduce.h"
#include "tests/simt/access_check.h"

namespace syntra {
namespace {

using namespace gpu;

constexpr KernelArguments kCall{};

struct Numbers {
  float value[kThreads];
};

// Each thread writes to shared memory and reads its neighbour's element.
__global__ void Rotate(float* to, bool barrier) {
  auto& shared = Shared<Numbers>();
  shared.value[ThreadIndex()] = static_cast<float>(ThreadIndex());
  if (barrier) SyncThreads();
  to[ThreadIndex()] = shared.value[(ThreadIndex() + 1) % ThreadCount()];
}

TEST(Simt, BarriersOrderSharedMemory) {
  std::vector<float> to(kThreads);
  Launch(kCall, {1, kThreads, sizeof(Numbers)}, Rotate, to.data(), true);
  EXPECT_EQ(simt::TakeComplaints(), "");
  for (int i = 0; i < kThreads; ++i) EXPECT_EQ(to[i], (i + 1) % kThreads);
}

TEST(PlantedFaults, AMissingBarrierIsARace) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "races are looked for in builds without AddressSanitizer";
#endif
  std::vector<float> to(kThreads);
  Launch(kCall, {1, kThreads, sizeof(Numbers)}, Rotate, to.data(), false);
  EXPECT_NE(simt::TakeComplaints().find("race: "), std::string::npos);
}

enum class Between { kNothing, kShuffle, kWarpBarrier };

// The threads of a warp hand values over through shared memory.
__global__ void RotateInWarp(float* to, Between between) {
  auto& shared = Shared<Numbers>();
  shared.value[ThreadIndex()] = static_cast<float>(ThreadIndex());
  if (between == Between::kShuffle) ShuffleFrom(ThreadIndex(), 0);
  if (between == Between::kWarpBarrier) SyncWarp();
  to[ThreadIndex()] = shared.value[ThreadIndex() / kWarp * kWarp + (LaneIndex() + 1) % kWarp];
}

std::string ComplaintsOfRotation(Between between) {
  std::vector<float> to(kThreads);
  Launch(kCall, {1, kThreads, sizeof(Numbers)}, RotateInWarp, to.data(), between);
  return simt::TakeComplaints();
}

TEST(PlantedFaults, AMissingWarpBarrierIsARace) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "races are looked for in builds without AddressSanitizer";
#endif
  EXPECT_EQ(ComplaintsOfRotation(Between::kWarpBarrier), "");
  EXPECT_NE(ComplaintsOfRotation(Between::kNothing).find("race: "), std::string::npos);
  // All lanes wait for each other there, but CUDA does not promise that they see what was written.
  EXPECT_NE(ComplaintsOfRotation(Between::kShuffle).find("race: "), std::string::npos);
}

// A device runs its own work unchecked, and no other.
TEST(PlantedFaults, AreFoundBesideADevice) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "races are looked for in builds without AddressSanitizer";
#endif
  const std::unique_ptr<Backend> gpu = OpenGpu(0);
  EXPECT_NE(ComplaintsOfRotation(Between::kNothing).find("race: "), std::string::npos);
}

// Every block adds to the same number.
__global__ void AddWithoutOrder(float* to) {
  if (ThreadIndex() == 0) *to += 1.0f;
}

TEST(PlantedFaults, BlocksThatShareANumberAreARace) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "races are looked for in builds without AddressSanitizer";
#endif
  float sum = 0.0f;
  Launch(kCall, {1, kWarp}, AddWithoutOrder, &sum);
  EXPECT_EQ(simt::TakeComplaints(), "");
  Launch(kCall, {2, kWarp}, AddWithoutOrder, &sum);
  EXPECT_NE(simt::TakeComplaints().find("race: "), std::string::npos);
}

__global__ void HalfAtTheBarrier(bool* past) {
  if (ThreadIndex() < kWarp) {
    SyncThreads();
  } else {
    SyncWarp();
    ShuffleFrom(ThreadIndex(), 0);
    if (LaneIndex() < 16) SyncWarp();
    SyncThreads();
  }
  *past = true;
}

TEST(PlantedFaults, LanesThatNeverComeAreNamed) {
  bool past = false;
  Launch(kCall, {1, 2 * kWarp}, HalfAtTheBarrier, &past);
  const std::string complaints = simt::TakeComplaints();
  EXPECT_NE(complaints.find("48 threads wait at a barrier, 16 for lanes"), std::string::npos)
      << complaints;
  EXPECT_FALSE(past);
}

__global__ void AskLane(int* to, int lane) { to[ThreadIndex()] = ShuffleFrom(ThreadIndex(), lane); }

TEST(PlantedFaults, AWrongLaneIsNamed) {
  std::vector<int> to(kWarp);
  Launch(kCall, {1, kWarp}, AskLane, to.data(), 31);
  EXPECT_EQ(simt::TakeComplaints(), "");
  EXPECT_EQ(to, std::vector<int>(kWarp, 31));
  Launch(kCall, {1, kWarp}, AskLane, to.data(), 32);
  EXPECT_NE(simt::TakeComplaints().find("lane 32"), std::string::npos);
}

__global__ void WriteBeyond(int places) {
  if (ThreadIndex() == 0) Shared<Numbers>().value[places] = 0.0f;
}

// Runs a launch that accesses memory outside the kernel's. Expects a complaint with `named`, unless
// AddressSanitizer ends the program first.
template <typename Body>
void ExpectRefused(const Body& launch, const std::string& named) {
#if defined(__SANITIZE_ADDRESS__)
  EXPECT_DEATH(launch(), "AddressSanitizer: use-after-poison");
#else
  launch();
  const std::string complaints = simt::TakeComplaints();
  EXPECT_NE(complaints.find(named), std::string::npos) << complaints;
#endif
}

TEST(PlantedFaults, AWriteBeyondSharedMemoryIsNamed) {
  const auto write = [](int place) {
    Launch(kCall, {1, kWarp, sizeof(Numbers)}, WriteBeyond, place);
  };
  write(kThreads - 1);
  EXPECT_EQ(simt::TakeComplaints(), "");
  ExpectRefused([&] { write(kThreads); }, "block 0 thread 0 writes shared byte 1024");
}

// One thread reads beyond the end.
__global__ void ReadBeyond(const float* from, float* to) {
  to[ThreadIndex()] = from[ThreadIndex() + (ThreadIndex() == 3 ? kWarp : 0)];
}

TEST(PlantedFaults, AReadBesideAnOperandIsNamed) {
  const std::vector<float> from(2 * kWarp);
  std::vector<float> to(kWarp);
  const auto read = [&] { Launch(kCall, {1, kWarp}, ReadBeyond, from.data(), to.data()); };
  read();
  EXPECT_EQ(simt::TakeComplaints(), "");
  const simt::access_check::Forbidden behind(std::as_bytes(std::span(from).subspan(kWarp)));
  ExpectRefused(read, "block 0 thread 3 reads memory at");
}

__global__ void ReadUnwritten(float* to) { *to = Shared<Numbers>().value[7]; }

TEST(PlantedFaults, UnwrittenSharedMemoryIsNotANumber) {
  float value = 0.0f;
  Launch(kCall, {1, kWarp, sizeof(Numbers)}, ReadUnwritten, &value);
  simt::TakeComplaints();
  EXPECT_TRUE(std::isnan(value));
}

TEST(Simt, RefusesGridsThatNoGpuTakes) {
  Launch(kCall, {1, 33}, AskLane, nullptr, 0);
  EXPECT_NE(simt::TakeComplaints().find("a grid of 1 blocks of 33 threads"), std::string::npos);
  for (const int64_t blocks : {int64_t{1} << 31, (int64_t{1} << 32) + 1}) {
    EXPECT_THROW(Launch(kCall, {blocks, 32}, AskLane, nullptr, 0), Error);
    EXPECT_EQ(simt::TakeComplaints(), "");
  }
}

__global__ void SumOfBlock(double* to, double unit) {
  auto& shared = Shared<SumStorage>();
  const double sum = BlockSum(unit * ThreadIndex(), shared.of_warp);
  to[ThreadIndex()] = sum;
}

// Sets the shared memory limit for the lifetime of the object.
struct SharedMemoryOf {
  explicit SharedMemoryOf(size_t bytes) : before(simt::MostSharedBytes()) {
    simt::SetMostSharedBytes(bytes);
  }
  ~SharedMemoryOf() { simt::SetMostSharedBytes(before); }
  size_t before;
};

TEST(Simt, RefusesMoreSharedMemoryThanTheGpuHas) {
  const SharedMemoryOf small(sizeof(Numbers) - 1);
  std::vector<float> to(kThreads);
  Launch(kCall, {1, kThreads, sizeof(Numbers)}, Rotate, to.data(), true);
  EXPECT_NE(simt::TakeComplaints().find("1023 are the most"), std::string::npos);
}

TEST(Attention, TilesTakeNoMoreSharedMemoryThanTheGpuHas) {
  for (const size_t most : {99 << 10, 163 << 10, 227 << 10}) {
    const SharedMemoryOf gpu(most);
    int last = 2;
    for (size_t kilobytes = 1; kilobytes < 300; ++kilobytes) {
      const auto memory = attention::TileMemory::For(kilobytes << 9, kilobytes << 9);
      const int stages = memory ? memory->stages : 0;
      EXPECT_LE(memory ? memory->bytes : 0, most);
      EXPECT_LE(stages, last) << "with more to hold";
      EXPECT_EQ(stages > 0, kilobytes << 10 <= most);
      last = stages;
    }
  }
}

TEST(Attention, HopperHasItsOwnKernel) {
  const int before = simt::Capability();
  attention::Dimensions heads{};
  for (const int capability : {80, 86, 89, 90, 100, 120}) {
    simt::SetCapability(capability);
    for (heads.head_size = 32; heads.head_size <= 128; heads.head_size *= 2) {
      EXPECT_EQ(attention::HopperServesForward(heads), capability == 90 && heads.head_size == 64);
    }
  }
  simt::SetCapability(before);
}

TEST(Attention, HopperKernelsCanBeTurnedOff) {
  const int before = simt::Capability();
  simt::SetCapability(90);
  attention::Dimensions heads{};
  heads.head_size = 64;
  setenv("SYNTRA_HOPPER", "off", 1);
  EXPECT_FALSE(attention::HopperServesForward(heads));
  unsetenv("SYNTRA_HOPPER");
  EXPECT_TRUE(attention::HopperServesForward(heads));
  simt::SetCapability(before);
}

TEST(Attention, OnePassForQueriesAndKeysCanBeTurnedOff) {
  const int before = simt::Capability();
  simt::SetCapability(90);
  attention::Dimensions z{};
  z.batch = z.heads = 1;
  z.queries = z.keys = z.head_size = 64;
  std::vector<TensorType> inputs(attention::kInputCount, {DType::kNone, {}});
  for (const int input : {attention::kQuery, attention::kKey, attention::kValue}) {
    inputs[input] = {DType::kBF16, {1, 64, 64}};
  }
  EXPECT_GT(attention::OnePassPartsOnHopper(z, inputs), 0);
  setenv("SYNTRA_HOPPER", "two_passes", 1);
  EXPECT_EQ(attention::OnePassPartsOnHopper(z, inputs), 0);
  EXPECT_GT(attention::TwoPassPartsOnHopper(z, inputs), 0);
  unsetenv("SYNTRA_HOPPER");
  simt::SetCapability(before);
}

TEST(Gpu, BlockSumReachesEveryThread) {
  std::vector<double> to(kThreads);
  Launch(kCall, {1, kThreads, sizeof(SumStorage)}, SumOfBlock, to.data(), 0.5);
  EXPECT_EQ(simt::TakeComplaints(), "");
  EXPECT_EQ(to, std::vector<double>(kThreads, 0.5 * kThreads * (kThreads - 1) / 2));
}

TEST(Gpu, SumPartsAddsAllPartsAtTheirColumns) {
  constexpr int64_t kWidth = kWarp + 1;
  for (const int64_t parts : {int64_t{1}, kMostParts, 2 * kMostParts + 17}) {
    std::vector<float> partial(parts * kWidth), to(kWidth, 1.0f);
    std::iota(partial.begin(), partial.end(), 0.0f);
    SumParts(kCall, partial.data(), parts, kWidth, to.data(), true);
    for (int64_t j = 0; j < kWidth; ++j) {
      // Whole numbers below 2^24, so all sums are exact.
      EXPECT_EQ(to[j], 1 + parts * j + kWidth * (parts * (parts - 1) / 2)) << parts << " parts";
    }
  }
}

}  // namespace
}  // namespace syntra
