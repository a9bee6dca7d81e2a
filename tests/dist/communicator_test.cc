// The contract of every communicator. Started plainly it tests `self`, under mpirun `mpi`; the
// optional argument is how many ranks share memory. All ranks run the same cases; a failure on any
// rank makes its exit code, and so mpirun's, non-zero.
#include "dist/communicator.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "dist/mpi.h"
#include "dist/tree_sum.h"

namespace syntra {
namespace {

std::unique_ptr<Communicator> communicator;

TensorView View(std::span<float> values) {
  return {values.data(), {DType::kF32, Shape{static_cast<int64_t>(values.size())}}};
}

// A reproducible value of mixed sign and magnitude for an element of a rank's vector.
float Value(int rank, int64_t i, int salt) {
  uint64_t bits = (uint64_t(rank) * 1000003 + i) * 0x9E3779B97F4A7C15u + salt;
  bits ^= bits >> 29;
  bits *= 0xBF58476D1CE4E5B9u;
  const float unit = static_cast<float>(bits >> 40) / (1 << 24) - 0.5f;
  return std::ldexp(unit, static_cast<int>(bits & 15));
}

std::vector<float> Mine(int64_t count, int salt = 0) {
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = Value(communicator->rank(), i, salt);
  return values;
}

// The sum over ranks that every rank must see, bit for bit.
std::vector<float> ExpectedSum(int64_t count, int salt = 0) {
  const int size = communicator->size();
  std::vector<float> sum(count), terms(size);
  std::vector<const float*> sources;
  for (const float& term : terms) sources.push_back(&term);
  for (int64_t i = 0; i < count; ++i) {
    for (int rank = 0; rank < size; ++rank) terms[rank] = Value(rank, i, salt);
    TreeSum<float>(sources, &sum[i], 1);
  }
  return sum;
}

bool SameBits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

TEST(Communicator, AllReduceSumIsTheTreeSumOnEveryRank) {
  for (const int64_t count : {1, 15, 16, 17, 1000, 65536, 1000003}) {
    std::vector<float> values = Mine(count);
    communicator->AllReduceSum(View(values));
    EXPECT_TRUE(SameBits(values, ExpectedSum(count))) << count;
  }
}

// Alternates long and short vectors, so a buffer that is reused too early would show.
TEST(Communicator, RepeatsWithTheSameBits) {
  for (int round = 0; round < 40; ++round) {
    const int64_t count = round % 3 == 0 ? 700001 : round % 3 == 1 ? 3 : 40000;
    std::vector<float> values = Mine(count, round % 3);
    communicator->AllReduceSum(View(values));
    std::vector<float> again = Mine(count, round % 3);
    communicator->AllReduceSum(View(again));
    ASSERT_TRUE(SameBits(values, again)) << round;
    if (round < 3) {
      EXPECT_TRUE(SameBits(values, ExpectedSum(count, round % 3)));
    }
  }
}

TEST(Communicator, ReduceScatterLeavesTheOwnShare) {
  const int rank = communicator->rank(), size = communicator->size();
  for (const int64_t share : {1, 15, 1000, 300007}) {
    std::vector<float> values = Mine(share * size);
    communicator->ReduceScatter(View(values));
    const std::vector<float> expected = ExpectedSum(share * size), before = Mine(share * size);
    for (int owner = 0; owner < size; ++owner) {
      const std::span<const float> got = std::span(values).subspan(owner * share, share);
      const auto& source = owner == rank ? expected : before;
      EXPECT_TRUE(SameBits(got, std::span(source).subspan(owner * share, share)));
    }
    // Gathering the shares completes the all-reduce.
    communicator->AllGather(View(values));
    EXPECT_TRUE(SameBits(values, expected)) << share;
  }
}

TEST(Communicator, AllGatherTakesAnyType) {
  const int rank = communicator->rank(), size = communicator->size();
  for (const int64_t share : {1, 3, 5000}) {
    std::vector<uint16_t> values(share * size, 0xFFFF);
    for (int64_t i = 0; i < share; ++i)
      values[rank * share + i] = static_cast<uint16_t>(rank * 7 + i);
    communicator->AllGather({values.data(), {DType::kBF16, Shape{share * size}}});
    for (int64_t i = 0; i < share * size; ++i) {
      ASSERT_EQ(values[i], static_cast<uint16_t>(i / share * 7 + i % share));
    }
  }
}

TEST(Communicator, Broadcast) {
  for (int root = 0; root < communicator->size(); ++root) {
    std::vector<float> values = Mine(1234);
    communicator->Broadcast(View(values), root);
    for (int64_t i = 0; i < 1234; ++i) ASSERT_EQ(values[i], Value(root, i, 0));
  }
}

TEST(Communicator, ShortVectorsOfDoubles) {
  const int rank = communicator->rank(), size = communicator->size();
  std::vector<double> sums = {1.0, double(rank), std::ldexp(1.0, 52)};
  communicator->AllReduceSum(sums);
  EXPECT_EQ(sums[0], size);
  EXPECT_EQ(sums[1], size * (size - 1) / 2);
  EXPECT_EQ(sums[2], size * std::ldexp(1.0, 52));
  std::vector<double> largest = {double(rank), -double(rank), rank == size - 1 ? NAN : 1.0};
  communicator->AllReduceMax(largest);
  EXPECT_EQ(largest[0], size - 1);
  EXPECT_EQ(largest[1], 0);
  EXPECT_TRUE(std::isnan(largest[2]));
  communicator->AllReduceSum(std::span<double>());
  const std::vector<double> mine{double(rank), 0.5};
  const std::vector<double> all = communicator->AllGather(std::span<const double>(mine));
  ASSERT_EQ(all.size(), size_t(2 * size));
  for (int peer = 0; peer < size; ++peer) {
    EXPECT_EQ(all[2 * peer], peer);
    EXPECT_EQ(all[2 * peer + 1], 0.5);
  }
}

TEST(Communicator, GatherKeepsRankOrder) {
  const int rank = communicator->rank();
  const std::vector<std::string> texts = communicator->Gather(std::string(rank * 3, 'a' + rank));
  if (rank != 0) {
    EXPECT_TRUE(texts.empty());
    return;
  }
  ASSERT_EQ(static_cast<int>(texts.size()), communicator->size());
  for (int r = 0; r < communicator->size(); ++r) EXPECT_EQ(texts[r], std::string(r * 3, 'a' + r));
}

TEST(Communicator, RefusesWrongViews) {
  std::vector<int32_t> values(communicator->size());
  const TensorView view{values.data(), {DType::kI32, Shape{communicator->size()}}};
  EXPECT_THROW(communicator->AllReduceSum(view), Error);
  EXPECT_THROW(communicator->Broadcast(view, communicator->size()), Error);
  if (communicator->size() > 1) {
    std::vector<float> uneven(communicator->size() + 1);
    EXPECT_THROW(communicator->ReduceScatter(View(uneven)), Error);
  }
}

// A figure for the log, not a check: shared machines swing too much.
TEST(Communicator, PrintsBandwidth) {
  if (communicator->size() == 1) GTEST_SKIP() << "one rank moves nothing";
  const auto best = [](const auto& call) {
    double seconds = 1e9;
    for (int repeat = 0; repeat < 4; ++repeat) {
      communicator->Barrier();
      const auto start = std::chrono::steady_clock::now();
      call();
      const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
      seconds = std::min(seconds, elapsed.count());
    }
    return seconds;
  };
  for (const int64_t megabytes : {1, 64}) {
    const int64_t count = (megabytes << 18) / communicator->size() * communicator->size();
    std::vector<float> values(count), sum(count);
    const double own = best([&] { communicator->AllReduceSum(View(values)); });
    const double scatter = best([&] { communicator->ReduceScatter(View(values)); });
    const double library = best([&] {
      MPI_Allreduce(values.data(), sum.data(), static_cast<int>(values.size()), MPI_FLOAT, MPI_SUM,
                    MPI_COMM_WORLD);
    });
    if (communicator->rank() == 0) {
      const double gigabytes = megabytes * 1048576e-9;
      printf(
          "%2d MiB, %d ranks: all-reduce %.1f GB/s, reduce-scatter %.1f GB/s, MPI_Allreduce %.1f "
          "GB/s\n",
          static_cast<int>(megabytes), communicator->size(), gigabytes / own, gigabytes / scatter,
          gigabytes / library);
    }
  }
}

}  // namespace
}  // namespace syntra

int main(int argc, char** argv) {
  using namespace syntra;
  testing::InitGoogleTest(&argc, argv);
  const int ranks_per_host = argc > 1 ? atoi(argv[1]) : 0;
  if (getenv("OMPI_COMM_WORLD_SIZE")) {
    communicator = std::make_unique<MpiCommunicator>(&argc, &argv,
                                                     MpiOptions{.ranks_per_host = ranks_per_host});
  } else {
    communicator = MakeCommunicator(&argc, &argv);
  }
  // One rank reports; the others speak up only when something fails.
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  if (communicator->rank() != 0) delete listeners.Release(listeners.default_result_printer());
  const int result = RUN_ALL_TESTS();
  if (result != 0 && communicator->rank() != 0) {
    fprintf(stderr, "rank %d: %d cases failed\n", communicator->rank(),
            testing::UnitTest::GetInstance()->failed_test_count());
  }
  communicator.reset();
  return result;
}
