// SPDX-License-Identifier: Apache-2.0
// Executables that share memory for their transients.
#include <gtest/gtest.h>

#include <numeric>

#include "kernels/tested.h"
#include "program/arena_memory.h"
#include "program/builder.h"
#include "program/numbers.h"
#include "program/weighted_sum.h"

namespace syntra {
namespace {

// Sums gelu(relu(x)) * x * relu(x) over n rows: its transients grow with n.
Program SumProgram(int64_t n) {
  ProgramBuilder builder;
  const Value x = builder.Input("x", {DType::kF32, {n, 8}});
  const Value positive = RecordOne(builder, "activation", {{"kind", std::string("relu")}}, {x});
  const Value gated = RecordOne(builder, "gated_gelu", {}, {positive, x});
  builder.Output("sum", WeightedSum(builder, gated, positive));
  return std::move(builder).Build();
}

class Sharing : public testing::Test {
 protected:
  std::unique_ptr<Executable> Make(int64_t n, bool shared) {
    Arenas arenas = memory_.arenas();
    arenas.transients = shared ? &transients_ : nullptr;
    auto executable = std::make_unique<Executable>(SumProgram(n), FastBackend(), arenas);
    std::vector<float> x(n * 8);
    std::iota(x.begin(), x.end(), -10.0F);
    executable->SetInput("x", std::span<const float>(x));
    return executable;
  }
  double SumOf(Executable& executable) {
    executable.Run();
    return Numbers(executable.Tensor("sum")).front();
  }
  double Alone(int64_t n) { return SumOf(*Make(n, false)); }

  ParameterStore none_;
  ArenaMemory memory_{none_, FastBackend()};
  TransientBuffer transients_{FastBackend().device()};
};

TEST_F(Sharing, FollowsTheBufferWhenItGrows) {
  const auto small = Make(4, true);
  const size_t before = transients_.size();
  EXPECT_EQ(SumOf(*small), Alone(4));
  EXPECT_EQ(SumOf(*small), Alone(4));  // on a GPU now by a graph
  const auto large = Make(4096, true);
  EXPECT_GT(transients_.size(), before);
  for (int turn = 0; turn < 3; ++turn) {
    EXPECT_EQ(SumOf(*small), Alone(4)) << turn;
    EXPECT_EQ(SumOf(*large), Alone(4096)) << turn;
  }
}

TEST_F(Sharing, TakesWhatTheLargestNeeds) {
  const auto large = Make(4096, true);
  EXPECT_EQ(transients_.size(), large->plan().arena_bytes);
  const auto small = Make(4, true);
  EXPECT_EQ(transients_.size(), large->plan().arena_bytes);
}

}  // namespace
}  // namespace syntra
