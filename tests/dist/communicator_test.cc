// SPDX-License-Identifier: Apache-2.0
// The contract of every communicator. Usage: communicator_test [host|device|nccl [RANKS]]. Without
// mpirun it tests `self`, under mpirun `mpi` with tensors in the memory of the host or of a GPU, or
// `nccl` on top of it. RANKS is the number of ranks that share memory. All ranks run the same
// cases. A failure on any rank makes its exit code, and so mpirun's, non-zero; where GPUs or NCCL
// are missing it is 77.
#include "dist/communicator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/digest.h"
#include "dist/all_ranks.h"
#include "dist/mpi.h"
#include "dist/nccl.h"
#include "dist/tree_sum.h"
#include "kernels/cuda.h"

namespace syntra {
namespace {

Communicator* communicator = nullptr;
Device* device = &Host();  // of the views

// Whether other ranks may read a vector, where they can.
enum class Access { kOwn, kExposed };
constexpr Access kAccesses[] = {Access::kOwn, Access::kExposed};

// A vector on the device.
template <typename T>
class Placed {
 public:
  explicit Placed(const std::vector<T>& values, Access access = Access::kOwn)
      : count_(static_cast<int64_t>(values.size())),
        memory_(device->Allocate(values.size() * sizeof(T), "a tested vector")) {
    device->CopyIn(memory_.data(), values.data(), memory_.size());
    if (access == Access::kExposed) exposure_ = communicator->Expose(view());
  }

  TensorView view() const { return {memory_.data(), {DTypeOf<T>(), Shape{count_}}, device}; }
  std::vector<T> Get() const {
    std::vector<T> values(count_);
    device->CopyOut(values.data(), memory_.data(), memory_.size());
    return values;
  }
  // Work for the device that nobody waits for.
  void Clear(int64_t first, int64_t count) const {
    device->Clear(memory_.data() + first * sizeof(T), count * sizeof(T));
  }

 private:
  int64_t count_;
  Buffer memory_;
  std::shared_ptr<Exposure> exposure_;
};

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

bool SameBits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// Equal ones, some that differ, one rank's alone.
std::vector<Shares> DifferentShares() {
  const int size = communicator->size();
  std::vector<Shares> list;
  for (const int64_t share : {1, 15, 1000, 300007}) {
    list.push_back(Shares::Even(share * size, size));
  }
  std::vector<int64_t> growing, alone;
  for (int64_t rank = 0; rank < size; ++rank) {
    growing.push_back(rank * (rank + 1) * 40011 + 7);  // each larger than the one before
    alone.push_back(rank < size / 2 ? 0 : 70001);
  }
  list.emplace_back(growing);
  list.emplace_back(alone);
  return list;
}

bool SumsAsTheTree() { return communicator->name() != "nccl" || device->is_host(); }

// Whether `sum` may be what all ranks see for an element with these terms: bit for bit the tree's,
// or as near as every order of additions comes.
bool IsSum(float sum, std::span<const float> terms) {
  if (SumsAsTheTree()) {
    std::vector<const float*> sources;
    for (const float& term : terms) sources.push_back(&term);
    float tree = 0;
    TreeSum<float>(sources, &tree, 1);
    return SameBits({&sum, 1}, {&tree, 1});
  }
  double exact = 0, magnitude = 0;
  for (const float term : terms) {
    exact += term;
    magnitude += std::abs(term);
  }
  const double roundings = static_cast<double>(terms.size() - 1) * std::ldexp(1.0, -24);
  return std::abs(sum - exact) <= roundings / (1 - roundings) * magnitude;
}

// Elements [first, first + sums.size()) of a sum of every rank's `term(rank, i)`.
template <typename Term>
void ExpectSums(std::span<const float> sums, int64_t first, const Term& term) {
  std::vector<float> terms(communicator->size());
  for (size_t i = 0; i < sums.size(); ++i) {
    for (int rank = 0; rank < communicator->size(); ++rank) terms[rank] = term(rank, first + i);
    ASSERT_TRUE(IsSum(sums[i], terms)) << "element " << first + i << " of " << sums.size();
  }
}

void ExpectSums(std::span<const float> sums, int salt = 0) {
  ExpectSums(sums, 0, [&](int rank, int64_t i) { return Value(rank, i, salt); });
}

void ExpectSameOnAllRanks(std::span<const float> values) {
  const Digest digest = DigestOf(std::as_bytes(values));
  const std::vector<double> mine(digest.begin(), digest.end());
  const std::vector<double> all = communicator->AllGather(std::span(mine));
  for (size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], mine[i % mine.size()]);
}

TEST(Communicator, AllReduceSumIsTheSumOnEveryRank) {
  for (const Access access : kAccesses) {
    for (const int64_t count : {1, 15, 16, 17, 1000, 65536, 1000003}) {
      const Placed<float> values(Mine(count), access);
      communicator->AllReduceSum(values.view());
      const std::vector<float> sums = values.Get();
      ExpectSums(sums);
      ExpectSameOnAllRanks(sums);
    }
  }
}

// What is exposed keeps its content, and collectives over parts of it leave the rest as it is.
TEST(Communicator, SumsPartsOfAnExposedVector) {
  const std::vector<float> before = Mine(1000003);
  const Placed<float> values(before, Access::kExposed);
  EXPECT_TRUE(SameBits(values.Get(), before));
  const auto part = [&](int64_t first, int64_t count) -> TensorView {
    return {static_cast<float*>(values.view().data) + first, {DType::kF32, {count}}, device};
  };
  constexpr int64_t kFirst = 12345, kCount = 600011;
  communicator->AllReduceSum(part(kFirst, kCount));
  std::vector<float> after = values.Get();
  ExpectSums(std::span(after).subspan(kFirst, kCount), kFirst,
             [](int rank, int64_t i) { return Value(rank, i, 0); });
  std::copy_n(before.begin() + kFirst, kCount, after.begin() + kFirst);
  EXPECT_TRUE(SameBits(after, before));
}

// Alternates long and short vectors, so a buffer that is reused too early would show.
TEST(Communicator, RepeatsWithTheSameBits) {
  for (int round = 0; round < 40; ++round) {
    const int64_t count = round % 3 == 0 ? 700001 : round % 3 == 1 ? 3 : 40000;
    const Placed<float> values(Mine(count, round % 3));
    const Placed<float> again(Mine(count, round % 3), Access::kExposed);
    communicator->AllReduceSum(values.view());
    communicator->AllReduceSum(again.view());
    ASSERT_TRUE(SameBits(values.Get(), again.Get())) << round;
    if (round < 3) ExpectSums(values.Get(), round % 3);
  }
}

// As a backward pass hands over its buckets: each is written by work that nobody waits for, and
// summed beside what comes next.
TEST(Communicator, StartedSumsFollowTheWorkBeforeAndPrecedeTheWorkAfterTheFinish) {
  const std::vector<int64_t> counts{40, 4000, 300000, 12, 70000};
  for (int round = 0; round < 3; ++round) {
    std::vector<Placed<float>> buckets;
    for (size_t b = 0; b < counts.size(); ++b) buckets.emplace_back(Mine(counts[b], b));
    for (size_t b = counts.size(); b-- > 0;) {
      // Before: rank 0 has nothing to add to the first half.
      if (communicator->rank() == 0) buckets[b].Clear(0, counts[b] / 2);
      communicator->StartAllReduceSum(buckets[b].view());
    }
    communicator->Barrier();
    for (size_t b = counts.size(); b-- > 0;) {
      communicator->Finish();
      const int64_t kept = counts[b] * 3 / 4;
      // After: the last quarter of the sum is not wanted.
      buckets[b].Clear(kept, counts[b] - kept);
      const std::vector<float> sums = buckets[b].Get();
      ExpectSums(std::span(sums).first(kept), 0, [&](int rank, int64_t i) {
        return rank == 0 && i < counts[b] / 2 ? 0 : Value(rank, i, b);
      });
      for (int64_t i = kept; i < counts[b]; ++i) ASSERT_EQ(sums[i], 0);
    }
  }
}

TEST(Communicator, ReduceScatterLeavesTheOwnShare) {
  const std::vector<Shares> list = DifferentShares();
  for (size_t i = 0; i < 2 * list.size(); ++i) {
    const Shares& shares = list[i / 2];
    const int64_t begin = shares.begin(communicator->rank());
    const int64_t share = shares.size(communicator->rank());
    const std::vector<float> before = Mine(shares.elements());
    const Placed<float> values(before, kAccesses[i % 2]);
    communicator->ReduceScatter(values.view(), shares);
    std::vector<float> after = values.Get();
    ExpectSums(std::span(after).subspan(begin, share), begin,
               [](int r, int64_t i) { return Value(r, i, 0); });
    // The other shares are as they were.
    std::copy_n(before.begin() + begin, share, after.begin() + begin);
    EXPECT_TRUE(SameBits(after, before)) << share;
    // Gathering the shares completes the all-reduce.
    communicator->AllGather(values.view(), shares);
    ExpectSums(values.Get());
    ExpectSameOnAllRanks(values.Get());
  }
}

// Longer than what passes through the host at a time, where the vector is on a device.
TEST(Communicator, LongVectorsHaveTheirSumsToTheEnd) {
  const int rank = communicator->rank();
  const Shares shares = Shares::Even(int64_t{5} << 20, communicator->size());
  const auto expect_sums = [](const Placed<float>& vector, int64_t begin, int64_t end) {
    const std::vector<float> sums = vector.Get();
    for (int64_t i = begin; i < end; i += 1009) {
      ExpectSums(std::span(sums).subspan(i, 1), i,
                 [](int r, int64_t at) { return Value(r, at, 0); });
    }
  };
  const Placed<float> summed(Mine(shares.elements())), shared(Mine(shares.elements()));
  communicator->AllReduceSum(summed.view());
  expect_sums(summed, 0, shares.elements());
  communicator->ReduceScatter(shared.view(), shares);
  expect_sums(shared, shares.begin(rank), shares.end(rank));
  communicator->AllGather(shared.view(), shares);
  expect_sums(shared, 0, shares.elements());
}

// A vector whose pieces are summed as they come, each by those who have a share of it.
TEST(Communicator, ReduceScatterOfPiecesIsThatOfTheWhole) {
  for (const Shares& shares : DifferentShares()) {
    const Placed<float> whole(Mine(shares.elements())), pieces(Mine(shares.elements()));
    communicator->ReduceScatter(whole.view(), shares);
    int started = 0;
    for (int64_t end = shares.elements(); end > 0; ++started) {
      const int64_t begin = std::max<int64_t>(0, end - 50000);
      TensorView piece = pieces.view();
      piece.data = static_cast<float*>(piece.data) + begin;
      piece.type.shape = Shape{end - begin};
      communicator->StartReduceScatter(piece, shares.Within(begin, end));
      end = begin;
    }
    for (; started > 0; --started) communicator->Finish();
    communicator->AllGather(whole.view(), shares);
    communicator->AllGather(pieces.view(), shares);
    ExpectSums(pieces.Get());
    EXPECT_TRUE(!SumsAsTheTree() || SameBits(whole.Get(), pieces.Get()));
  }
}

// The last rank has all elements as its share, so the others have nothing to sum, and it has
// nothing to gather: whoever is done first changes its vector at once.
TEST(Communicator, AVectorMayChangeWhenItsCollectiveReturns) {
  const bool owns = communicator->rank() == communicator->size() - 1;
  std::vector<int64_t> ends(communicator->size());
  ends.back() = 1000003;
  const Shares shares(ends);
  for (const Access access : kAccesses) {
    const Placed<float> summed(Mine(shares.elements()), access);
    const Placed<float> gathered(Mine(shares.elements()), access);
    communicator->ReduceScatter(summed.view(), shares);
    if (!owns) summed.Clear(0, shares.elements());
    communicator->AllGather(gathered.view(), shares);
    if (owns) gathered.Clear(0, shares.elements());
    if (owns) {
      ExpectSums(summed.Get());
    } else {
      const std::vector<float> values = gathered.Get();
      for (int64_t i = 0; i < shares.elements(); ++i) {
        ASSERT_EQ(values[i], Value(communicator->size() - 1, i, 0));
      }
    }
  }
}

// As an update hands over its pieces, and the next forward half takes them: in the order in which
// they were started, each before the work that needs it, whatever else is gathered between.
TEST(Communicator, StartedGathersFollowTheWorkBeforeAndPrecedeTheWorkThatTakesThem) {
  const int rank = communicator->rank();
  const std::vector<Shares> list = DifferentShares();
  std::vector<Placed<float>> pieces;
  for (const Shares& shares : list) {
    pieces.emplace_back(Mine(shares.elements()));
    // Before: a rank's share begins with zeros.
    const int64_t zeros = shares.size(rank) / 2;
    if (zeros > 0) pieces.back().Clear(shares.begin(rank), zeros);
    communicator->StartAllGather(pieces.back().view(), shares);
  }
  const Shares& other = list.front();
  const Placed<float> between(Mine(other.elements()));
  communicator->AllGather(between.view(), other);
  for (size_t i = 0; i < list.size(); ++i) {
    communicator->Finish();
    const Shares& shares = list[i];
    const int64_t kept = shares.elements() - shares.elements() / 4;
    pieces[i].Clear(kept, shares.elements() - kept);  // after: not wanted
    const std::vector<float> values = pieces[i].Get();
    for (int owner = 0; owner < shares.ranks(); ++owner) {
      for (int64_t at = shares.begin(owner); at < shares.end(owner); ++at) {
        const bool zero = at >= kept || at < shares.begin(owner) + shares.size(owner) / 2;
        ASSERT_EQ(values[at], zero ? 0 : Value(owner, at, 0)) << "piece " << i;
      }
    }
  }
}

TEST(Communicator, AllGatherTakesAnyType) {
  const int rank = communicator->rank();
  for (const Shares& shares : DifferentShares()) {
    std::vector<BFloat16> values(shares.elements(), BFloat16{0xFFFF});
    for (int64_t i = shares.begin(rank); i < shares.end(rank); ++i) {
      values[i].bits = static_cast<uint16_t>(i * 7);
    }
    const Placed<BFloat16> placed(values);
    communicator->AllGather(placed.view(), shares);
    values = placed.Get();
    for (int64_t i = 0; i < shares.elements(); ++i) {
      ASSERT_EQ(values[i].bits, static_cast<uint16_t>(i * 7));
    }
  }
}

TEST(Communicator, Broadcast) {
  for (int root = 0; root < communicator->size(); ++root) {
    const Placed<float> placed(Mine(1234));
    communicator->Broadcast(placed.view(), root);
    const std::vector<float> values = placed.Get();
    for (int64_t i = 0; i < 1234; ++i) ASSERT_EQ(values[i], Value(root, i, 0));
  }
}

TEST(Communicator, TextsReachAllRanks) {
  const int rank = communicator->rank();
  for (const std::string& text : {std::string(), std::string("a"), std::string(70001, 'x')}) {
    std::string received = rank == 0 ? text : "a rank's own";
    BroadcastText(*communicator, &received);
    EXPECT_EQ(received, text);
  }
  std::vector<std::string> expected;
  for (int other = 0; other < communicator->size(); ++other) {
    expected.push_back(std::string(other, 'y'));  // one is empty
  }
  EXPECT_EQ(AllGatherLines(*communicator, std::string(rank, 'y')), expected);
}

// Host memory works whatever device other views are on.
TEST(Communicator, ServesHostMemoryInTheOrderOfTheTree) {
  std::vector<float> sums = Mine(1000);
  communicator->AllReduceSum({sums.data(), {DType::kF32, Shape{1000}}});
  Device* const tested = std::exchange(device, &Host());
  ExpectSums(sums);
  device = tested;
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
  const Placed<int32_t> values(std::vector<int32_t>(communicator->size()));
  EXPECT_THROW(communicator->AllReduceSum(values.view()), Error);
  EXPECT_THROW(communicator->StartAllReduceSum(values.view()), Error);
  const int size = communicator->size();
  EXPECT_THROW(communicator->ReduceScatter(values.view(), Shares::Even(size, size)), Error);
  EXPECT_THROW(communicator->Broadcast(values.view(), communicator->size()), Error);
  // Shares of another vector, or of other ranks.
  const Placed<float> longer(std::vector<float>(size + 1));
  for (const Shares& wrong : {Shares::Even(size, size), Shares::Even(size + 1, size + 1)}) {
    EXPECT_THROW(communicator->ReduceScatter(longer.view(), wrong), Error);
    EXPECT_THROW(communicator->AllGather(longer.view(), wrong), Error);
  }
}

// Why the ranks cannot test on GPUs; empty: they can.
std::string WhyNoGpu(bool one_each) {
  const GpuReport found = FindGpus();
  if (found.count == 0) return "no GPU: " + found.problem;
  if (!one_each || communicator->ranks_on_host() <= found.count) return "";
  return fmt::format("{} ranks need a GPU each, there are {}", communicator->ranks_on_host(),
                     found.count);
}

// Says why nothing was tested; returns the exit code.
int Skip(const std::string& reason) {
  constexpr int kSkipped = 77;
  if (communicator->rank() == 0) {
    fmt::print("[  SKIPPED ] {}\n", reason);
    std::fflush(stdout);  // mpirun ends the ranks when the first one ends with such a code
  }
  return kSkipped;
}

int TestOnGpu(bool with_nccl) {
  if (const std::string reason = WhyNoGpu(with_nccl); !reason.empty()) return Skip(reason);
  const std::unique_ptr<Backend> gpu = OpenGpu(communicator->rank_on_host() % FindGpus().count);
  device = &gpu->device();
  if (!with_nccl) return TestOnAllRanks(*communicator);
  const nccl::Library* library = nullptr;
  try {
    library = &nccl::Load();
  } catch (const Error& error) {
    return Skip(error.what());
  }
  NcclCommunicator nccl(*communicator, *device, *library);
  communicator = &nccl;
  return TestOnAllRanks(*communicator);
}

}  // namespace
}  // namespace syntra

int main(int argc, char** argv) {
  using namespace syntra;
  testing::InitGoogleTest(&argc, argv);
  const std::string tested = argc > 1 ? argv[1] : "host";
  const int ranks_per_host = argc > 2 ? std::atoi(argv[2]) : 0;
  std::unique_ptr<Communicator> host;
  if (std::getenv("OMPI_COMM_WORLD_SIZE")) {
    host = std::make_unique<MpiCommunicator>(&argc, &argv,
                                             MpiOptions{.ranks_per_host = ranks_per_host});
  } else {
    host = MakeCommunicator(&argc, &argv);
  }
  communicator = host.get();
  return tested == "host" ? TestOnAllRanks(*communicator) : TestOnGpu(tested == "nccl");
}
