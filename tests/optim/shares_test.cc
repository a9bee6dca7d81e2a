// SPDX-License-Identifier: Apache-2.0
// Ranks that share an update do together what one does alone, bit for bit.
#include "optim/shares.h"

#include <gtest/gtest.h>

#include "kernels/tested.h"
#include "optim/optimizer.h"
#include "program/arena_memory.h"
#include "program/numbers.h"
#include "tests/base/kinds.h"

namespace syntra {
namespace {

constexpr int64_t kBlock = ParameterStore::kBlock;

// Of several blocks, of one that is not full, and one that does not learn: 5 + 1 + 3 + 1 + 5
// blocks.
ParameterStore Parameters(int ranks) {
  ParameterStore parameters;
  parameters.ShareEqually(ranks);
  parameters.Declare({"table", {70, 30}, Initializer::Normal(1), true});
  parameters.Declare({"frozen", {3, 5}, Initializer::Normal(1), false});
  parameters.Declare({"matrix", {3, 20, 22}, Initializer::Normal(1), true});
  parameters.Declare({"gate", {1}, Initializer::Constant(0), true});
  parameters.Declare({"last", {65, 32}, Initializer::Normal(1), true});
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
  Rank(const ParameterStore& parameters, const OptimizerConfig& config,
       const std::vector<ElementRange>& ranges, Backend& backend)
      : parameters_(parameters),
        optimizer_(MakeOptimizer(config, parameters, ranges)),
        ranges_(ranges),
        memory_(parameters, backend, optimizer_->state_elements()),
        update_(optimizer_->UpdateProgram(parameters).program, backend, memory_.arenas()) {
    update_.SetSections({optimizer_->UpdateProgram(parameters).block_sum_ends.back(),
                         update_.program().instructions.size()});
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
      std::vector<double> sums = all;
      const std::vector<double> own = BlockSums();
      for (const ElementRange& range : ranges_) {
        for (int64_t block = range.begin / kBlock; block < range.end / kBlock; ++block) {
          if (block < std::ssize(own)) sums[block] = own[block];
        }
      }
      memory_.SetState(0, sums);
    });
  }
  std::vector<double> BlockSums() const { return memory_.State(0, optimizer_->block_sums()); }
  double Scalar(const char* name) const { return update_.Scalar(name); }

  // What this rank updates of the parameter, and keeps of the state, is what `alone` has there.
  void ExpectSame(const Rank& alone) const {
    for (const Parameter& p : parameters_.all()) {
      const std::vector<ElementRange> held = optimizer_->HeldOf(p);
      EXPECT_EQ(Of(memory_.ParameterValues(p), held), Of(alone.memory_.ParameterValues(p), held))
          << p.name;
    }
    for (size_t i = 0; i < optimizer_->state().size(); ++i) {
      const StateTensor &own = optimizer_->state()[i], &whole = alone.optimizer_->state()[i];
      EXPECT_EQ(own.name, whole.name);
      EXPECT_EQ(own.shape, whole.shape);
      EXPECT_EQ(memory_.State(own.offset, CountOf(own.held)),
                Of(alone.memory_.State(whole.offset, whole.shape.size()), own.held))
          << own.name;
    }
  }
  int64_t StateElements() const {
    int64_t elements = 0;
    for (const StateTensor& tensor : optimizer_->state()) elements += CountOf(tensor.held);
    return elements;
  }

 private:
  static std::vector<double> Of(const std::vector<double>& values,
                                const std::vector<ElementRange>& ranges) {
    std::vector<double> list;
    for (const ElementRange& range : ranges) {
      list.insert(list.end(), values.begin() + range.begin, values.begin() + range.end);
    }
    return list;
  }

  const ParameterStore& parameters_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<ElementRange> ranges_;
  ArenaMemory memory_;
  Executable update_;
};

class SharedUpdate : public testing::TestWithParam<OptimizerConfig::Kind> {};

// Of buckets that each rank has one or several blocks of, and of the whole arena.
TEST_P(SharedUpdate, IsTheWholeOneToTheBit) {
  const OptimizerConfig config = ConfigOf(GetParam());
  for (Backend& backend : Backends()) {
    for (const int ranks : {1, 2, 3, 4, 9}) {
      for (const int64_t blocks : {0, 1, 2}) {
        const ParameterStore parameters = Parameters(ranks), unpadded = Parameters(1);
        Rank alone(unpadded, config, {{0, unpadded.arena_elements()}}, backend);
        const auto buckets =
            UpdateShares(parameters, GrainOf(config), ranks, blocks * ranks * kBlock);
        std::vector<std::unique_ptr<Rank>> sharing;
        for (int rank = 0; rank < ranks; ++rank) {
          sharing.push_back(
              std::make_unique<Rank>(parameters, config, PartsOf(buckets, rank), backend));
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
}

INSTANTIATE_TEST_SUITE_P(Optim, SharedUpdate,
                         testing::ValuesIn(EnumValues<OptimizerConfig::Kind>()),
                         [](const auto& info) { return OptimizerConfig::Kind_Name(info.param); });

// One reduce-scatter and one all-gather of equal parts do each bucket, and nothing is left over.
TEST(UpdateShares, OfElementsAreEqualPartsOfEveryBucket) {
  for (const int ranks : {1, 2, 3, 4, 7, 64}) {
    const ParameterStore parameters = Parameters(ranks);
    EXPECT_LT(parameters.arena_elements() - 15 * kBlock, ranks * kBlock);
    for (const int64_t blocks : {0, 1, 2, 3}) {
      const int64_t bucket_elements = blocks * ranks * kBlock;
      int64_t end = parameters.arena_elements();
      for (const auto& [elements, shares] :
           UpdateShares(parameters, UpdateGrain::kElement, ranks, bucket_elements)) {
        EXPECT_EQ(elements.end, end);
        EXPECT_TRUE(elements.begin == 0 || elements.size() <= bucket_elements);
        EXPECT_EQ(shares.elements(), elements.size());
        EXPECT_TRUE(shares.are_equal()) << ranks << " ranks, " << blocks << " blocks";
        EXPECT_EQ(shares.size(0) % kBlock, 0);
        end = elements.begin;
      }
      EXPECT_EQ(end, 0);
    }
  }
}

TEST(UpdateShares, OfElementsNeedAnArenaThatDivides) {
  EXPECT_THROW(UpdateShares(Parameters(1), UpdateGrain::kElement, 4, 0), Error);
}

// Of 16 blocks, of which the table has 5, in buckets of 6, 2 and 8.
TEST(UpdateShares, OfARankAreAPartOfEachBucket) {
  using Ranges = std::vector<ElementRange>;
  const ParameterStore parameters = Parameters(2);
  const auto buckets = UpdateShares(parameters, UpdateGrain::kElement, 2, 6 * kBlock);
  const ElementRange last{10 * kBlock, 13 * kBlock}, middle{8 * kBlock, 9 * kBlock};
  const ElementRange first{0, 4 * kBlock};
  EXPECT_EQ(PartsOf(buckets, 0), (Ranges{last, middle, first}));
  EXPECT_EQ(Joined(PartsOf(buckets, 0)), (Ranges{first, middle, last}));
  // A rank that has all of them has one range.
  EXPECT_EQ(Joined(PartsOf(UpdateShares(parameters, UpdateGrain::kElement, 1, 6 * kBlock), 0)),
            (Ranges{{0, 16 * kBlock}}));
}

// The largest is the smallest that there is, as trying all shares shows.
TEST(UpdateShares, OfTensorsAreAsEvenAsTheTensorsAllow) {
  for (int seed = 0; seed < 20; ++seed) {
    ParameterStore parameters;
    std::vector<int64_t> ends;
    for (int i = 0; i < 7; ++i) {
      const auto blocks = static_cast<int64_t>(1 + (seed * 7919 + i * i * 104729) % 13);
      parameters.Declare({fmt::format("p{}", i), {blocks * kBlock}, {}, true});
      ends.push_back(parameters.arena_elements());
    }
    int64_t best = parameters.arena_elements();
    for (const int64_t first : ends) {
      for (const int64_t second : ends) {
        if (second >= first) best = std::min(best, Shares({first, second, ends.back()}).largest());
      }
    }
    const auto whole = UpdateShares(parameters, UpdateGrain::kTensor, 3, 0);
    const Shares& shares = whole.front().shares;
    EXPECT_EQ(shares.largest(), best) << seed;
    const auto buckets = UpdateShares(parameters, UpdateGrain::kTensor, 3, 4 * kBlock);
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_TRUE(std::ranges::count(ends, shares.end(rank))) << seed;
      EXPECT_EQ(Joined(PartsOf(buckets, rank)), Joined(PartsOf(whole, rank))) << seed;
    }
  }
}

TEST(UpdateShares, MoreRanksThanTensorsLeaveSomeWithout) {
  const auto buckets = UpdateShares(Parameters(1), UpdateGrain::kTensor, 9, 0);
  const Shares& shares = buckets.front().shares;
  EXPECT_EQ(shares.largest(), 5 * kBlock);
  EXPECT_EQ(shares.elements(), 15 * kBlock);
  EXPECT_EQ(shares.size(8), 0);
  EXPECT_TRUE(Joined(PartsOf(buckets, 8)).empty());
}

}  // namespace
}  // namespace syntra
