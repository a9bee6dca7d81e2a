// SPDX-License-Identifier: Apache-2.0
// A feed-forward network whose hidden units are split over the ranks (Shoeybi et al. 2019, section
// 3), by collectives inside its program, against the whole network in double precision on one rank.
// All ranks run the same cases.
#include <gtest/gtest.h>

#include "dist/all_ranks.h"
#include "program/arena_memory.h"
#include "program/builder.h"
#include "program/numbers.h"
#include "program/weighted_sum.h"
#include "tests/base/error_of.h"
#include "train/agreement.h"
#include "train/program_ranks.h"

namespace syntra {
namespace {

Communicator* communicator = nullptr;

constexpr int64_t kWidth = 16, kHidden = 24, kLayers = 2;  // hidden units for 1 to 4 ranks
constexpr double kRounding = 1e-5;

// Which hidden units of every layer.
struct Part {
  int64_t ranks = 1, rank = 0;
  int64_t size() const { return kHidden / ranks; }
  int64_t begin() const { return rank * size(); }
};

Part OwnPart() { return {communicator->size(), communicator->rank()}; }

// Row-major [rows, columns]: the columns [begin, begin + count).
template <typename T>
std::vector<T> Columns(const std::vector<T>& matrix, int64_t columns, int64_t begin,
                       int64_t count) {
  std::vector<T> part;
  for (auto row = matrix.begin(); row != matrix.end(); row += columns) {
    part.insert(part.end(), row + begin, row + begin + count);
  }
  return part;
}

template <typename T>
std::vector<T> Rows(const std::vector<T>& matrix, int64_t columns, int64_t begin, int64_t count) {
  return {matrix.begin() + begin * columns, matrix.begin() + (begin + count) * columns};
}

class Network {
 public:
  // `ranks` may be null: this rank computes all of it.
  Network(Part part, Backend& backend, RankGroup* ranks) : part_(part) {
    ProgramBuilder builder;
    Record(builder);
    memory_.emplace(parameters_, backend);
    executable_.emplace(std::move(builder).Build(), backend, memory_->arenas(),
                        TransientMemory::kPlain, ranks);
    for (const Parameter& parameter : parameters_.all()) {
      memory_->SetParameter(parameter, OwnOf(parameter.name, Whole(parameter)));
    }
    const int64_t count = executable_->Tensor("cotangent").type.shape.size();
    executable_->SetInput("cotangent", std::span<const float>(NormalNumbers("cotangent", count)));
    executable_->Run();
  }

  std::vector<double> Output() const { return Numbers(executable_->Tensor("y")); }
  std::vector<double> Gradient(const std::string& name) {
    return memory_->Gradient(parameters_.Get(name));
  }
  const ParameterStore& parameters() const { return parameters_; }

  // The part of a whole tensor that this network has.
  template <typename T>
  std::vector<T> OwnOf(const std::string& name, const std::vector<T>& whole) const {
    if (name.starts_with("in")) return Columns(whole, kHidden, part_.begin(), part_.size());
    if (name.starts_with("out")) return Rows(whole, kWidth, part_.begin(), part_.size());
    return whole;
  }

 private:
  static std::vector<float> Whole(const Parameter& parameter) {
    const bool is_split = parameter.name != "x";
    const int64_t count = is_split ? kWidth * kHidden : parameter.shape.size();
    return NormalNumbers(parameter.name, count, is_split ? 0.3 : 1);
  }

  void Record(ProgramBuilder& builder) {
    const auto parameter = [&](const std::string& name, Shape shape) {
      const std::vector<std::string> axes(shape.rank(), "x");
      return builder.Parameter(
          parameters_.Declare({name, shape, axes, Initializer::Normal(1), true}));
    };
    const auto linear = [&](Value x, const std::string& name, Shape shape) {
      return RecordOne(
          builder, "matmul",
          {{"transpose_a", false}, {"transpose_b", false}, {"dtype", std::string("f32")}},
          {x, parameter(name, shape)});
    };
    const Attributes ranks{{"ranks", part_.ranks}};
    Value x = parameter("x", {3, 5, kWidth});
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      const std::string number = std::to_string(layer);
      const Value copy = RecordOne(builder, "copy_to_ranks", ranks, {x});
      const Value hidden = RecordOne(builder, "activation", {{"kind", std::string("relu")}},
                                     {linear(copy, "in" + number, {kWidth, part_.size()})});
      x = RecordOne(builder, "all_reduce", ranks,
                    {linear(hidden, "out" + number, {part_.size(), kWidth})});
    }
    builder.Output("y", x);
    const Value cotangent = builder.Input("cotangent", builder.TypeOf(x));
    builder.Differentiate(WeightedSum(builder, x, cotangent));
  }

  Part part_;
  ParameterStore parameters_;
  std::optional<ArenaMemory> memory_;
  std::optional<Executable> executable_;
};

TEST(SplitLayers, AreTheWholeOnes) {
  Network whole({}, ReferenceBackend(), nullptr);
  ProgramRanks ranks(*communicator);
  Network split(OwnPart(), CpuBackend(), &ranks);
  EXPECT_LT(LargestError(split.Output(), whole.Output()), kRounding);
  for (const Parameter& parameter : whole.parameters().all()) {
    const std::vector<double> truth = whole.Gradient(parameter.name);
    EXPECT_GT(Norm(truth), 0.1) << parameter.name;
    EXPECT_LT(LargestError(split.Gradient(parameter.name), split.OwnOf(parameter.name, truth)),
              kRounding)
        << parameter.name;
  }
}

TEST(SplitLayers, HaveTheSameBitsOnAllRanksAndInEveryRun) {
  ProgramRanks ranks(*communicator);
  Network first(OwnPart(), CpuBackend(), &ranks);
  Network second(OwnPart(), CpuBackend(), &ranks);
  EXPECT_EQ(first.Output(), second.Output());
  // What every rank has all of.
  for (const std::vector<double>& numbers : {first.Output(), first.Gradient("x")}) {
    const std::vector<double> all = communicator->AllGather(numbers);
    for (int rank = 0; rank < communicator->size(); ++rank) {
      EXPECT_EQ(Rows(all, std::ssize(numbers), rank, 1), numbers) << rank;
    }
  }
  for (const Parameter& parameter : first.parameters().all()) {
    EXPECT_EQ(first.Gradient(parameter.name), second.Gradient(parameter.name)) << parameter.name;
  }
}

TEST(SplitLayers, OfOtherRanksAreRefused) {
  ProgramRanks ranks(*communicator);
  // Alone, and with ranks that record for one more.
  EXPECT_NE(ErrorOf([&] { Network(OwnPart(), CpuBackend(), nullptr); }, ExitCode::kInternal)
                .find(fmt::format("all_reduce over {} ranks in a program that 1 run",
                                  communicator->size())),
            std::string::npos);
  const Part part{communicator->size() == 2 ? 3 : 2, 0};
  EXPECT_NE(ErrorOf([&] { Network(part, CpuBackend(), &ranks); }, ExitCode::kInternal)
                .find("in a program that"),
            std::string::npos);
}

TEST(SplitLayers, WithOtherCollectivesAreRefused) {
  ProgramRanks ranks(*communicator);
  std::vector<std::string> collectives{"all_reduce f32[2] {ranks=2}",
                                       "all_reduce f32[3] {ranks=2}"};
  ranks.CheckAlike(collectives);
  if (communicator->rank() == 1) std::swap(collectives[0], collectives[1]);
  const std::string error = ErrorOf([&] { ranks.CheckAlike(collectives); }, ExitCode::kConfig);
  EXPECT_NE(error.find("different exchanges between ranks"), std::string::npos) << error;
  if (communicator->rank() == 0) {
    EXPECT_NE(error.find("exchange 1: all_reduce f32[2] {ranks=2} on rank"), std::string::npos)
        << error;
  }
}

}  // namespace
}  // namespace syntra

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const auto ranks = syntra::MakeCommunicator(&argc, &argv);
  syntra::communicator = ranks.get();
  return syntra::TestOnAllRanks(*ranks);
}
