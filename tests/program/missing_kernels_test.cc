// SPDX-License-Identifier: Apache-2.0
// The errors of an executable on a backend without some kernels.
#include <gtest/gtest.h>

#include <set>

#include "kernels/tested.h"
#include "program/arena_memory.h"
#include "program/builder.h"
#include "program/executable.h"
#include "program/weighted_sum.h"
#include "tests/base/error_of.h"

namespace syntra {
namespace {

// The tested backend, but for the kernels of some ops.
class Without final : public Backend {
 public:
  explicit Without(std::set<std::string> ops) : ops_(std::move(ops)) {}
  std::string_view name() const override { return FastBackend().name(); }
  Device& device() override { return FastBackend().device(); }
  TensorType Stored(const TensorType& type) const override { return FastBackend().Stored(type); }
  double PeakFlops(DType type) override { return FastBackend().PeakFlops(type); }
  std::optional<BoundKernel> Bind(const Op& op, const OpCall& call) override {
    return ops_.contains(op.name) ? std::nullopt : FastBackend().Bind(op, call);
  }

 private:
  std::set<std::string> ops_;
};

Program SmallProgram() {
  ProgramBuilder builder;
  const TensorType type{DType::kF32, {2, 3}};
  const Value x = builder.Input("x", type);
  const Value y =
      RecordOne(builder, "gated_gelu", {},
                {RecordOne(builder, "activation", {{"kind", std::string("relu")}}, {x}), x});
  builder.Output("sum", WeightedSum(builder, y, x));
  return std::move(builder).Build();
}

TEST(Executable, NamesAllMissingKernels) {
  const ParameterStore none;
  ArenaMemory memory(none, FastBackend());
  Without backend({"gated_gelu", "sum_to"});
  const std::string what =
      ErrorOf([&] { Executable(SmallProgram(), backend, memory.arenas()); }, ExitCode::kResources);
  EXPECT_NE(what.find("gated_gelu {"), std::string::npos) << what;
  EXPECT_NE(what.find("sum_to {"), std::string::npos) << what;
  EXPECT_EQ(what.find("relu {"), std::string::npos) << what;
}

}  // namespace
}  // namespace syntra
