// SPDX-License-Identifier: Apache-2.0
// Barriers, copies of tiles and products of warpgroups on the simulated GPU: two products that
// follow each other, as in attention, once correct and once with each typical mistake.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/cuda/hopper.h"

namespace syntra {
namespace {

using namespace gpu;

constexpr int kSide = 64, kPieces = 3, kStages = 2;

enum class Fault {
  kNone,
  kNoWait,          // multiplies before the copies have arrived
  kWrongParity,     // waits for the other phase
  kFewBytes,        // expects one tile of two
  kManyBytes,       // expects more than is copied
  kEarlyCopy,       // copies without waiting until the stage is free
  kEarlyRelease,    // says that the stage is free before the product is complete
  kNoFence,         // threads write an operand without FenceAsync
  kNoBarrierFence,  // a barrier is made without FenceAsync
  kNoProductFence,  // no FenceProducts
  kNoProductWait,   // reads sums before they are complete
  kEarlyChange,     // changes a register that a product reads
  kEarlySum,        // changes sums that a product adds to
  kNotSwizzled,     // a descriptor without swizzling
  kSwizzled64,      // a descriptor with another one
  kWrongStride,     // a descriptor with another distance of groups
  kThreadReads,     // a thread reads a tile without waiting for it
  kUnalignedTile,   // the target of a copy is not aligned
  kThreeWarps,      // a warp leaves a product out
};

struct Tiles {
  alignas(1024) BFloat16 scale[kSide * kSide];  // written by threads, swizzled
  struct Stage {
    alignas(1024) BFloat16 rows[kSide * kSide], columns[kSide * kSide];
  } stages[kStages];
  Barrier full[kStages], empty[kStages];
};

// Where CopyTileAsync would put an element.
__device__ int PlaceOf(int row, int column) {
  return row * kSide + (column / 8 ^ row % 8) * 8 + column % 8;
}

// Z [64, 64] = sum over pieces p of bf16(S A_p^T) B_p, for S, A_p and B_p [64, 64].
__global__ void MultiplyTwice(const BFloat16* s, const TensorMap __grid_constant__ a,
                              const TensorMap __grid_constant__ b, float* z, Fault fault) {
  auto& shared = Shared<Tiles>();
  constexpr int kBytes = sizeof(Tiles::Stage);
  const bool first = ThreadIndex() == 0;
  for (int i = ThreadIndex(); i < kSide * kSide; i += ThreadCount()) {
    shared.scale[PlaceOf(i / kSide, i % kSide)] = s[i];
  }
  if (first) {
    for (int stage = 0; stage < kStages; ++stage) {
      MakeBarrier(shared.full[stage], 1);
      MakeBarrier(shared.empty[stage], kProductWarps);
    }
  }
  if (fault != Fault::kNoFence && (fault != Fault::kNoBarrierFence || !first)) FenceAsync();
  SyncThreads();
  if (WarpIndex() == kProductWarps) {
    for (int piece = 0; piece < kPieces && LaneIndex() == 0; ++piece) {
      const int stage = piece % kStages, round = piece / kStages;
      if (fault != Fault::kEarlyCopy) WaitFor(shared.empty[stage], round % 2 ^ 1);
      const int few = fault == Fault::kFewBytes ? kBytes / 2 : 0;
      ArriveExpecting(shared.full[stage], kBytes - few + (fault == Fault::kManyBytes ? 16 : 0));
      const int off = fault == Fault::kUnalignedTile ? 64 : 0;
      CopyTileAsync(shared.stages[stage].rows + off, a, 0, 0, piece, shared.full[stage]);
      CopyTileAsync(shared.stages[stage].columns, b, 0, 0, piece, shared.full[stage]);
    }
    return;
  }
  Fragment sums[8] = {};
  for (int piece = 0; piece < kPieces; ++piece) {
    const int stage = piece % kStages, round = piece / kStages;
    const Tiles::Stage& tiles = shared.stages[stage];
    const auto descriptor = [&](const BFloat16* from) {
      uint64_t result = TileDescriptor(from);
      if (fault == Fault::kNotSwizzled) result &= ~(uint64_t{3} << 62);
      if (fault == Fault::kSwizzled64) result ^= uint64_t{3} << 62;
      if (fault == Fault::kWrongStride) result ^= uint64_t{32} << 32;
      return result;
    };
    if (fault == Fault::kThreadReads && ToFloat(tiles.rows[0]) > 1.0f) sums[0].sum[0] = 1.0f;
    if (fault != Fault::kNoWait) {
      WaitFor(shared.full[stage], round % 2 ^ (fault == Fault::kWrongParity ? 1 : 0));
    }
    Fragment inner[8] = {};
    if (fault != Fault::kNoProductFence) FenceProducts(inner);
    for (int k = 0; k < kSide; k += 16) {
      if (fault == Fault::kThreeWarps && WarpIndex() == 3 && k == 0) continue;
      MultiplyAsync(inner, descriptor(shared.scale + k), descriptor(tiles.rows + k));
    }
    CommitProducts();
    if (fault != Fault::kNoProductWait) WaitForProducts(inner);
    FragmentA weights[4];
    for (int k = 0; k < 4; ++k) weights[k] = RowsOf(inner[2 * k], inner[2 * k + 1]);
    FenceProducts(sums, weights);
    for (int k = 0; k < 4; ++k) {
      MultiplyAsync(sums, weights[k], descriptor(tiles.columns + 16 * k * kSide));
    }
    CommitProducts();
    if (fault == Fault::kEarlyRelease && LaneIndex() == 0) Arrive(shared.empty[stage]);
    if (fault == Fault::kEarlyRelease) SyncWarp();
    if (fault == Fault::kEarlyChange) weights[2].pair[1] ^= 1;
    if (fault == Fault::kEarlySum) sums[2].sum[1] = 0.0f;
    WaitForProducts(sums);
    if (fault != Fault::kEarlyRelease && LaneIndex() == 0) Arrive(shared.empty[stage]);
  }
  for (int n = 0; n < 8; ++n) {
    for (int i = 0; i < 4; ++i) {
      const int row = WarpIndex() * 16 + FragmentRow(i);
      z[row * kSide + 8 * n + FragmentColumn(i)] = sums[n].sum[i];
    }
  }
}

// A thread hands numbers over to a warp, twice in the same place. `all`: each lane has read before
// one says so.
struct Handover {
  Barrier full, empty;
  int number;
};
__global__ void HandOver(int* to, bool all) {
  auto& shared = Shared<Handover>();
  if (ThreadIndex() == 0) {
    MakeBarrier(shared.full, 1);
    MakeBarrier(shared.empty, 1);
  }
  SyncThreads();
  for (int round = 0; round < 2; ++round) {
    if (WarpIndex() == 0) {
      WaitFor(shared.full, round);
      to[round * kWarp + LaneIndex()] = shared.number;
      if (all) SyncWarp();
      if (LaneIndex() == 0) Arrive(shared.empty);
    } else if (LaneIndex() == 0) {
      WaitFor(shared.empty, round ^ 1);
      shared.number = round;
      Arrive(shared.full);
    }
  }
}

std::string ComplaintsOfHandover(bool all) {
  std::vector<int> to(2 * kWarp), want(2 * kWarp);
  std::fill(want.begin() + kWarp, want.end(), 1);
  Launch(KernelArguments{}, {1, 2 * kWarp, sizeof(Handover)}, HandOver, to.data(), all);
  EXPECT_EQ(to, want);
  return simt::TakeComplaints();
}

struct OneTile {
  alignas(1024) BFloat16 elements[kSide * kSide];
  Barrier full;
};
__global__ void CopyTileTo(BFloat16* to, const TensorMap __grid_constant__ map, int column,
                           int row) {
  auto& shared = Shared<OneTile>();
  if (ThreadIndex() == 0) {
    MakeBarrier(shared.full, 1);
    FenceAsync();
    ArriveExpecting(shared.full, sizeof(shared.elements));
    CopyTileAsync(shared.elements, map, column, row, 0, shared.full);
  }
  SyncThreads();
  WaitFor(shared.full, 0);
  for (int i = ThreadIndex(); i < kSide * kSide; i += ThreadCount()) {
    to[i] = shared.elements[PlaceOf(i / kSide, i % kSide)];
  }
}

// Copies a tile over another one that threads have read. `fenced`: each has called FenceAsync.
__global__ void CopyTwice(BFloat16* to, const TensorMap __grid_constant__ map, bool fenced) {
  auto& shared = Shared<OneTile>();
  if (ThreadIndex() == 0) {
    MakeBarrier(shared.full, 1);
    FenceAsync();
  }
  SyncThreads();
  for (int round = 0; round < 2; ++round) {
    if (ThreadIndex() == 0) {
      ArriveExpecting(shared.full, sizeof(shared.elements));
      CopyTileAsync(shared.elements, map, 0, 0, round, shared.full);
    }
    WaitFor(shared.full, round);
    to[round * kWarp + LaneIndex()] = shared.elements[LaneIndex()];
    if (fenced) FenceAsync();
    SyncThreads();
  }
}

std::string ComplaintsOfCopies(bool fenced) {
  constexpr int kTiles = 2;
  std::vector<Line<BFloat16>> lines(kTiles * kSide * kSide / kEight);
  for (size_t i = 0; i < lines.size(); ++i) {
    std::ranges::fill(lines[i].element, ToBFloat16(i < lines.size() / kTiles ? 1.0f : 2.0f));
  }
  std::vector<BFloat16> to(kTiles * kWarp);
  Launch(KernelArguments{}, {1, kWarp, sizeof(OneTile)}, CopyTwice, to.data(),
         MapTiles({lines[0].element, kTiles, kSide, kSide, kSide}, kSide), fenced);
  EXPECT_EQ(ToFloat(to.front()), 1.0f);
  EXPECT_EQ(ToFloat(to.back()), 2.0f);
  return simt::TakeComplaints();
}

// Two warpgroups get registers that a third one gives back. Of the first, only so many `warps` do.
constexpr int kGettingWarps = 2 * kProductWarps;
template <int kGet, int kGive>
__global__ void ShareRegisters(int warps) {
  if (WarpIndex() >= kGettingWarps) {
    GiveRegisters<kGive>();
  } else if (WarpIndex() < warps || WarpIndex() >= kProductWarps) {
    GetRegisters<kGet>();
  }
}

template <int kGet, int kGive>
std::string ComplaintsOfRegisters(int warps = kProductWarps) {
  Launch(KernelArguments{}, {1, (kGettingWarps + kProductWarps) * kWarp},
         ShareRegisters<kGet, kGive>, warps);
  return simt::TakeComplaints();
}

struct Outcome {
  bool right;
  std::string complaints;
};

// Small whole numbers: their products are exact in bf16.
int Number(int i, int modulus) { return i * 7 % modulus - modulus / 2; }

Outcome RunWith(Fault fault) {
  constexpr int kSize = kSide * kSide;
  const auto fill = [](int count, int modulus) {
    std::vector<Line<BFloat16>> lines(count / kEight);
    for (int i = 0; i < count; ++i) {
      // A few are not zero, so that sums of products stay small.
      const bool zero = i % 5 != 0 || i / kSide % 4 == 1;
      lines[i / kEight].element[i % kEight] =
          ToBFloat16(zero ? 0.0f : static_cast<float>(Number(i, modulus)));
    }
    return lines;
  };
  const auto s = fill(kSize, 3), a = fill(kPieces * kSize, 4), b = fill(kPieces * kSize, 5);
  const auto at = [](const auto& lines, int i) {
    return ToFloat(lines[i / kEight].element[i % kEight]);
  };
  std::vector<float> want(kSize), z(kSize);
  for (int p = 0; p < kPieces; ++p) {
    for (int i = 0; i < kSide; ++i) {
      for (int j = 0; j < kSide; ++j) {
        float inner = 0.0f;
        for (int k = 0; k < kSide; ++k) {
          inner += at(s, i * kSide + k) * at(a, p * kSize + j * kSide + k);
        }
        for (int c = 0; c < kSide; ++c) {
          want[i * kSide + c] += inner * at(b, p * kSize + j * kSide + c);
        }
      }
    }
  }
  const auto map = [](const BFloat16* from) {
    return MapTiles({from, kPieces, kSide, kSide, kSide}, kSide);
  };
  const TensorMap map_a = map(a[0].element), map_b = map(b[0].element);
  Launch(KernelArguments{}, {1, 5 * kWarp, sizeof(Tiles)}, MultiplyTwice, s[0].element, map_a,
         map_b, z.data(), fault);
  return {z == want, simt::TakeComplaints()};
}

void ExpectComplaint(Fault fault, const std::string& what) {
  const std::string complaints = RunWith(fault).complaints;
  EXPECT_NE(complaints.find(what), std::string::npos) << complaints;
}

TEST(Hopper, TilesAndWarpgroupsMakeProducts) {
  simt::InEveryOrder([] {
    const Outcome outcome = RunWith(Fault::kNone);
    EXPECT_EQ(outcome.complaints, "");
    EXPECT_TRUE(outcome.right);
  });
}

TEST(Hopper, TilesAreZeroBesideTheTensor) {
  std::vector<Line<BFloat16>> lines(kSide * kSide / kEight);
  for (Line<BFloat16>& line : lines) std::ranges::fill(line.element, ToBFloat16(1.0f));
  const TensorMap map = MapTiles({lines[0].element, 1, kSide, kSide, kSide}, kSide);
  for (const auto& [column, row] : {std::pair(-8, -3), std::pair(24, 60), std::pair(16, -64)}) {
    SCOPED_TRACE(fmt::format("from row {}, column {}", row, column));
    std::vector<BFloat16> to(kSide * kSide);
    Launch(KernelArguments{}, {1, kWarp, sizeof(OneTile)}, CopyTileTo, to.data(), map, column, row);
    EXPECT_EQ(simt::TakeComplaints(), "");
    for (int i = 0; i < kSide * kSide; ++i) {
      const int from_row = row + i / kSide, from_column = column + i % kSide;
      const bool there =
          from_row >= 0 && from_row < kSide && from_column >= 0 && from_column < kSide;
      ASSERT_EQ(ToFloat(to[i]), there ? 1.0f : 0.0f)
          << "row " << from_row << ", column " << from_column;
    }
  }
}

TEST(Hopper, BarriersInSharedMemoryOrderIt) { EXPECT_EQ(ComplaintsOfHandover(true), ""); }

TEST(Hopper, TilesThatThreadsHaveReadAreOverwritten) { EXPECT_EQ(ComplaintsOfCopies(true), ""); }

TEST(Hopper, MapsThatTheDriverRefusesAreRefused) {
  const std::vector<Line<BFloat16>> lines(kSide * kSide / kEight);
  const BFloat16* from = lines[0].element;
  EXPECT_NO_THROW(MapTiles({from + kEight, 1, kSide - 1, kSide - kEight, kSide}, 256));
  EXPECT_THROW(MapTiles({from + 4, 1, kSide - 1, kSide - kEight, kSide}, kSide), Error);
  EXPECT_THROW(MapTiles({from, 1, kSide, kSide - 4, kSide - 4}, kSide), Error);
  EXPECT_THROW(MapTiles({from, 1, kSide, kSide, kSide}, 257), Error);
  EXPECT_THROW(MapTiles({from, 1, int64_t{1} << 34, kSide, kSide}, kSide), Error);
}

// One block of 384 threads has 168 registers for each.
TEST(Hopper, WarpgroupsShareTheRegistersOfTheirBlock) {
  EXPECT_EQ((ComplaintsOfRegisters<240, 24>()), "");
  EXPECT_EQ((ComplaintsOfRegisters<232, 40>()), "");
  const auto expect = [](const std::string& complaints, const char* what) {
    EXPECT_NE(complaints.find(what), std::string::npos) << complaints;
  };
  expect(ComplaintsOfRegisters<240, 32>(), "a block of 64512 registers asks for 65536");
  expect(ComplaintsOfRegisters<160, 24>(), "has 168 registers and asks for up to 160");
  expect(ComplaintsOfRegisters<236, 24>(), "has 168 registers and asks for up to 236");
  expect(ComplaintsOfRegisters<240, 16>(), "has 168 registers and asks for down to 16");
  expect(ComplaintsOfRegisters<232, 40>(1), "thread 32 sets other registers than its warpgroup");
}

class FaultsOnHopper : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "races are looked for in builds without AddressSanitizer, which does not know "
                    "the stacks that faults abandon";
#endif
  }
};

TEST_F(FaultsOnHopper, TilesBeginAtMultiplesOf16Bytes) {
  std::vector<Line<BFloat16>> lines(kSide * kSide / kEight);
  const TensorMap map = MapTiles({lines[0].element, 1, kSide, kSide, kSide}, kSide);
  std::vector<BFloat16> to(kSide * kSide);
  Launch(KernelArguments{}, {1, kWarp, sizeof(OneTile)}, CopyTileTo, to.data(), map, 4, 0);
  const std::string complaints = simt::TakeComplaints();
  EXPECT_NE(complaints.find("copies from column 4"), std::string::npos) << complaints;
}

TEST_F(FaultsOnHopper, ALaneThatArrivesDoesNotSpeakForItsWarp) {
  EXPECT_NE(ComplaintsOfHandover(false).find("race: "), std::string::npos);
}

TEST_F(FaultsOnHopper, TilesThatNobodyWaitedForAreNotThere) {
  for (Fault fault : {Fault::kNoWait, Fault::kWrongParity, Fault::kEarlyCopy}) {
    EXPECT_FALSE(RunWith(fault).right) << static_cast<int>(fault);
  }
  ExpectComplaint(Fault::kEarlyCopy, "arrives at a barrier at which all have arrived");
}

TEST_F(FaultsOnHopper, BarriersThatExpectOtherBytesAreNamed) {
  ExpectComplaint(Fault::kFewBytes, "expects fewer bytes than are copied");
  ExpectComplaint(Fault::kManyBytes, "129 for a phase of a barrier in shared memory");
}

TEST_F(FaultsOnHopper, MissingFencesAreNamed) {
  ExpectComplaint(Fault::kNoProductFence, "computes a product without a fence");
  ExpectComplaint(Fault::kNoFence, "what block 0 thread 0 wrote without a fence");
  ExpectComplaint(Fault::kNoBarrierFence, "what block 0 thread 0 wrote without a fence");
  const std::string complaints = ComplaintsOfCopies(false);
  EXPECT_NE(complaints.find("what block 0 thread 0 read without a fence"), std::string::npos)
      << complaints;
}

TEST_F(FaultsOnHopper, ProductsThatNobodyWaitedForAreNotThere) {
  EXPECT_FALSE(RunWith(Fault::kNoProductWait).right);
  ExpectComplaint(Fault::kEarlyChange, "changes an operand of a product");
  ExpectComplaint(Fault::kEarlySum, "writes sums of a product");
}

TEST_F(FaultsOnHopper, OperandsInUseAreNotOverwritten) {
  ExpectComplaint(Fault::kEarlyRelease, "race: ");
  ExpectComplaint(Fault::kThreadReads, "race: ");
}

TEST_F(FaultsOnHopper, WrongDescriptorsShow) {
  for (Fault fault : {Fault::kNotSwizzled, Fault::kSwizzled64, Fault::kWrongStride}) {
    EXPECT_FALSE(RunWith(fault).right) << static_cast<int>(fault);
  }
  ExpectComplaint(Fault::kUnalignedTile, "copies to a tile that is not aligned");
}

TEST_F(FaultsOnHopper, AWarpThatLeavesAProductOutIsNamed) {
  ExpectComplaint(Fault::kThreeWarps, "computes other products than its warpgroup");
}

}  // namespace
}  // namespace syntra
