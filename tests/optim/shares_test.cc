// SPDX-License-Identifier: Apache-2.0
// Ranks that share an update do together what one does alone, bit for bit.
#include "optim/shares.h"

#include <gtest/gtest.h>

#include "kernels/tested.h"
#include "optim/optimizer.h"
#include "program/arena_memory.h"
#include "program/numbers.h"

namespace syntra {
namespace {

constexpr int64_t kBlock = ParameterStore::kBlock;

// Of several blocks, of one that is not full, and one that does not learn.
ParameterStore Parameters() {
  ParameterStore parameters;
  parameters.Declare({"table", {70, 30}, {"x", "y"}, Initializer::Normal(1), true});
  parameters.Declare({"frozen", {3, 5}, {"x", "y"}, Initializer::Normal(1), false});
  parameters.Declare({"matrix", {3, 20, 22}, {"h", "x", "y"}, Initializer::Normal(1), true});
  parameters.Declare({"gate", {1}, {"x"}, Initializer::Constant(0), true});
  parameters.Declare({"last", {65, 32}, {"x", "y"}, Initializer::Normal(1), true});
  return parameters;
}

OptimizerConfig ConfigOf(OptimizerConfig::Kind kind) {
  OptimizerConfig config;
  config.set_kind(kind);
  config.set_weight_decay(0.01);
  config.set_min_factored_size(4);
  config.set_clip_norm(0.5);
  return config;
}

// One rank's parameters, and the state of its share of the update.
class Rank {
 public:
  Rank(const ParameterStore& parameters, const OptimizerConfig& config, ElementRange range,
       Backend& backend)
      : parameters_(parameters),
        optimizer_(MakeOptimizer(config, parameters, range)),
        range_(range),
        memory_(parameters, backend, optimizer_->state_elements()),
        update_(optimizer_->UpdateProgram(parameters), backend, memory_.arenas()) {
    update_.SetSections({optimizer_->own_block_sums_end(), update_.program().instructions.size()});
    for (const Parameter& p : parameters.all()) {
      memory_.SetParameter(p, NormalNumbers(p.name, p.shape.size()));
    }
  }

  // By the sums of squares that this rank makes and, of what others do, those in `all`.
  void Update(int64_t step, const std::vector<double>& all = {}) {
    for (const Parameter& p : parameters_.all()) {
      memory_.SetGradient(p, NormalNumbers("gradient of " + p.name, p.shape.size(), 1, step));
    }
    const std::vector<float> hyper = optimizer_->Hyper({.step = step, .rate = 0.01});
    update_.SetInput("hyper", std::span<const float>(hyper));
    update_.Run(Gradients::kAdd, [&](size_t section) {
      if (section > 0 || all.empty()) return;
      std::vector<double> sums = BlockSums();
      const int64_t begin = range_.begin / kBlock, end = range_.end / kBlock;
      std::copy(all.begin(), all.begin() + begin, sums.begin());
      std::copy(all.begin() + end, all.end(), sums.begin() + end);
      memory_.SetState(0, sums);
    });
  }
  std::vector<double> BlockSums() const { return memory_.State(0, optimizer_->block_sums()); }
  double Scalar(const char* name) const { return update_.Scalar(name); }

  // What this rank updates of the parameter, and keeps of the state, is what `alone` has there.
  void ExpectSame(const Rank& alone) const {
    for (const Parameter& p : parameters_.all()) {
      const ElementRange held = optimizer_->HeldOf(p);
      EXPECT_EQ(Of(memory_.ParameterValues(p), held), Of(alone.memory_.ParameterValues(p), held))
          << p.name;
    }
    for (size_t i = 0; i < optimizer_->state().size(); ++i) {
      const StateTensor &own = optimizer_->state()[i], &whole = alone.optimizer_->state()[i];
      EXPECT_EQ(own.name, whole.name);
      EXPECT_EQ(own.shape, whole.shape);
      EXPECT_EQ(memory_.State(own.offset, own.held.size()),
                alone.memory_.State(whole.offset + own.held.begin, own.held.size()))
          << own.name;
    }
  }
  int64_t StateElements() const {
    int64_t elements = 0;
    for (const StateTensor& tensor : optimizer_->state()) elements += tensor.held.size();
    return elements;
  }

 private:
  static std::vector<double> Of(const std::vector<double>& values, ElementRange range) {
    if (range.size() == 0) return {};
    return {values.begin() + range.begin, values.begin() + range.end};
  }

  const ParameterStore& parameters_;
  std::unique_ptr<Optimizer> optimizer_;
  ElementRange range_;
  ArenaMemory memory_;
  Executable update_;
};

class SharedUpdate : public testing::TestWithParam<OptimizerConfig::Kind> {};

TEST_P(SharedUpdate, IsTheWholeOneToTheBit) {
  const ParameterStore parameters = Parameters();
  const OptimizerConfig config = ConfigOf(GetParam());
  for (Backend& backend : Backends()) {
    for (const int ranks : {1, 2, 3, 4, 9}) {
      Rank alone(parameters, config, {0, parameters.arena_elements()}, backend);
      const Shares shares = UpdateShares(parameters, GrainOf(config), ranks);
      std::vector<std::unique_ptr<Rank>> sharing;
      for (int rank = 0; rank < ranks; ++rank) {
        const ElementRange range{shares.begin(rank), shares.end(rank)};
        sharing.push_back(std::make_unique<Rank>(parameters, config, range, backend));
      }
      for (int64_t step = 0; step < 3; ++step) {
        alone.Update(step);
        for (const auto& rank : sharing) {
          rank->Update(step, alone.BlockSums());
          EXPECT_EQ(rank->BlockSums(), alone.BlockSums());
          EXPECT_EQ(rank->Scalar("sum_squares"), alone.Scalar("sum_squares"));
          rank->ExpectSame(alone);
        }
      }
      int64_t elements = 0;
      for (const auto& rank : sharing) elements += rank->StateElements();
      EXPECT_EQ(elements, alone.StateElements());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Optim, SharedUpdate,
                         testing::Values(OptimizerConfig::ADAFACTOR, OptimizerConfig::ADAMW,
                                         OptimizerConfig::ADAMW_RMS),
                         [](const auto& info) { return OptimizerConfig::Kind_Name(info.param); });

TEST(UpdateShares, OfElementsAreEven) {
  const ParameterStore parameters = Parameters();  // 5 + 1 + 3 + 1 + 5 blocks
  EXPECT_EQ(parameters.arena_elements(), 15 * kBlock);
  const Shares shares = UpdateShares(parameters, UpdateGrain::kElement, 4);
  EXPECT_EQ(shares.end(0), 4 * kBlock);
  EXPECT_EQ(shares.end(2), 12 * kBlock);
  EXPECT_EQ(shares.end(3), 15 * kBlock);
}

// The largest is the smallest that there is, as trying all shares shows.
TEST(UpdateShares, OfTensorsAreAsEvenAsTheTensorsAllow) {
  for (int seed = 0; seed < 20; ++seed) {
    ParameterStore parameters;
    std::vector<int64_t> ends;
    for (int i = 0; i < 7; ++i) {
      const auto blocks = static_cast<int64_t>(1 + (seed * 7919 + i * i * 104729) % 13);
      parameters.Declare({fmt::format("p{}", i), {blocks * kBlock}, {"x"}, {}, true});
      ends.push_back(parameters.arena_elements());
    }
    int64_t best = parameters.arena_elements();
    for (const int64_t first : ends) {
      for (const int64_t second : ends) {
        if (second >= first) best = std::min(best, Shares({first, second, ends.back()}).largest());
      }
    }
    const Shares shares = UpdateShares(parameters, UpdateGrain::kTensor, 3);
    EXPECT_EQ(shares.largest(), best) << seed;
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_TRUE(std::ranges::count(ends, shares.end(rank))) << seed;
    }
  }
}

TEST(UpdateShares, MoreRanksThanTensorsLeaveSomeWithout) {
  const Shares shares = UpdateShares(Parameters(), UpdateGrain::kTensor, 9);
  EXPECT_EQ(shares.largest(), 5 * kBlock);
  EXPECT_EQ(shares.elements(), 15 * kBlock);
  EXPECT_EQ(shares.size(8), 0);
}

}  // namespace
}  // namespace syntra
