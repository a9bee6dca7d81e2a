// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies and matrix loads on the simulated GPU: a small product with a pipeline of
// stages, once correct and once with each typical mistake.
#include <gtest/gtest.h>

#include <vector>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/mma.h"

namespace syntra {
namespace {

using namespace gpu;

constexpr int kSide = 16, kStages = 3, kPieces = 5, kStride = kSide + 8;

enum class Fault {
  kNone,
  kNoWait,         // reads data before the copies are complete
  kLateWait,       // waits for one group too few
  kNoBarrier,      // does not wait for the copies of the other warp
  kEarlyCopy,      // copies to a stage that the other warp may still read
  kNextStage,      // reads the wrong stage
  kWrongRow,       // a lane passes another lane's row
  kUnalignedRow,   // a lane passes an address inside a row's first 16 bytes
  kUnalignedCopy,  // a thread copies to such an address
};

struct Stage {
  alignas(16) BFloat16 a[kSide * kStride];  // [row][inner]
  alignas(16) BFloat16 b[kSide * kStride];  // [inner][column]
};
struct Stages {
  Stage stage[kStages];
};

// C [16, 16] = A [16, 16 kPieces] B [16 kPieces, 16]. One warp copies A, the other B; each computes
// eight columns.
__global__ void MultiplyInStages(const BFloat16* a, const BFloat16* b, float* c, Fault fault) {
  auto& shared = Shared<Stages>();
  const int matrix = LaneIndex() / 8, line = LaneIndex() % 8;
  const auto copy = [&](int piece) {
    if (piece < kPieces) {
      Stage& stage = shared.stage[piece % kStages];
      const int row = LaneIndex() / 2, column = LaneIndex() % 2 * 8;
      const bool astray = fault == Fault::kUnalignedCopy && ThreadIndex() == 9;
      BFloat16* to = (WarpIndex() == 0 ? stage.a : stage.b) + row * kStride + column;
      CopyAsync(to + (astray ? 1 : 0),
                WarpIndex() == 0 ? a + (row * kPieces + piece) * kSide + column
                                 : b + (piece * kSide + row) * kSide + column,
                true);
    }
    CommitCopies();
  };
  Fragment sums = {};
  copy(0);
  copy(1);
  for (int piece = 0; piece < kPieces; ++piece) {
    if (fault == Fault::kEarlyCopy) copy(piece + 2);
    if (fault == Fault::kLateWait || fault == Fault::kEarlyCopy) {
      WaitForCopies<2>();
    } else if (fault != Fault::kNoWait) {
      WaitForCopies<1>();
    }
    if (fault != Fault::kNoBarrier) SyncThreads();
    if (fault != Fault::kEarlyCopy) copy(piece + 2);
    const Stage& stage = shared.stage[(piece + (fault == Fault::kNextStage ? 1 : 0)) % kStages];
    const int other = fault == Fault::kWrongRow && LaneIndex() == 13 ? 1 : 0;
    const int astray = fault == Fault::kUnalignedRow && LaneIndex() == 13 ? 1 : 0;
    FragmentA rows;
    LoadMatrices(rows.pair,
                 stage.a + (matrix % 2 * 8 + line + other) * kStride + matrix / 2 * 8 + astray);
    uint32_t pair[4];
    LoadMatricesTransposed(pair, stage.b + (matrix % 2 * 8 + line) * kStride + matrix / 2 * 8);
    const int own = WarpIndex() * 2;
    Mma(sums, rows, {pair[own], pair[own + 1]});
  }
  for (int i = 0; i < 4; ++i) {
    c[FragmentRow(i) * kSide + WarpIndex() * 8 + FragmentColumn(i)] = sums.sum[i];
  }
}

struct Outcome {
  bool right;
  std::string complaints;
};

Outcome RunWith(Fault fault) {
  std::vector<float> a(kSide * kSide * kPieces), b(a.size()), want(kSide * kSide), c(want.size());
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<float>(i % 11) - 5.0f;
    b[i] = static_cast<float>(i % 7) - 3.0f;
  }
  for (int i = 0; i < kSide; ++i) {
    for (int j = 0; j < kSide; ++j) {
      for (int k = 0; k < kSide * kPieces; ++k) {
        want[i * kSide + j] += a[i * kSide * kPieces + k] * b[k * kSide + j];
      }
    }
  }
  const auto rounded = [](const std::vector<float>& from) {
    std::vector<Line<BFloat16>> lines(from.size() / kEight);
    for (size_t i = 0; i < from.size(); ++i) {
      lines[i / kEight].element[i % kEight] = ToBFloat16(from[i]);
    }
    return lines;
  };
  const auto a_lines = rounded(a), b_lines = rounded(b);
  Launch(KernelArguments{}, {1, 2 * kWarp, sizeof(Stages)}, MultiplyInStages, a_lines[0].element,
         b_lines[0].element, c.data(), fault);
  return {c == want, simt::TakeComplaints()};
}

TEST(Simt, CopiesAndMatricesMakeAProduct) {
  simt::InEveryOrder([] {
    const Outcome outcome = RunWith(Fault::kNone);
    EXPECT_EQ(outcome.complaints, "");
    EXPECT_TRUE(outcome.right);
  });
}

TEST(PlantedFaults, DataThatNobodyWaitedForAreNotThere) {
  const Outcome outcome = RunWith(Fault::kNoWait);
  EXPECT_FALSE(outcome.right);
  EXPECT_NE(outcome.complaints.find("never waited for 5 of its copies"), std::string::npos)
      << outcome.complaints;
  EXPECT_FALSE(RunWith(Fault::kLateWait).right);
}

TEST(PlantedFaults, AWrongStageIsNotThere) { EXPECT_FALSE(RunWith(Fault::kNextStage).right); }

TEST(PlantedFaults, CopiesWithoutABarrierAreARace) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "races are looked for in builds without AddressSanitizer";
#endif
  for (Fault fault : {Fault::kNoBarrier, Fault::kEarlyCopy}) {
    EXPECT_NE(RunWith(fault).complaints.find("race: "), std::string::npos);
  }
}

TEST(PlantedFaults, AWrongRowOfAMatrixShows) {
  EXPECT_FALSE(RunWith(Fault::kWrongRow).right);
  const std::string row = RunWith(Fault::kUnalignedRow).complaints;
  EXPECT_NE(row.find("thread 13 gives a matrix row that is not aligned"), std::string::npos) << row;
  const std::string copy = RunWith(Fault::kUnalignedCopy).complaints;
  EXPECT_NE(copy.find("thread 9 copies bytes that are not aligned"), std::string::npos) << copy;
}

}  // namespace
}  // namespace syntra
