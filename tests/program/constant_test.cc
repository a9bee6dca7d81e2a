// SPDX-License-Identifier: Apache-2.0
// Constants with elements of their own.
#include <gtest/gtest.h>

#include "kernels/tested.h"
#include "program/arena_memory.h"
#include "program/builder.h"
#include "program/numbers.h"

namespace syntra {
namespace {

const std::vector<float> kTable = {0.5F, -1.0F, 2.0F, 8.0F, 0.0F, 3.0F};

TEST(Constant, HasItsElementsInEveryRun) {
  for (Backend& backend : Backends()) {
    ProgramBuilder builder;
    const Value x = builder.Input("x", {DType::kF32, {2}});
    const Value table = builder.Constant({3, 2}, kTable);
    const Value ids = builder.Constant({1, 2}, std::vector<int32_t>{2, 0});
    const Value rows =
        RecordOne(builder, "embedding", {{"dtype", std::string("f32")}}, {ids, table});
    builder.Output("y", RecordOne(builder, "add", {}, {rows, x}));
    ParameterStore none;
    ArenaMemory memory(none, backend);
    Executable executable(std::move(builder).Build(), backend, memory.arenas());
    for (const float shift : {10.0F, 20.0F, 30.0F}) {
      executable.SetInput("x", std::span<const float>(std::vector<float>{shift, 0.0F}));
      executable.Run();
      EXPECT_EQ(Numbers(executable.Tensor("y")),
                (std::vector<double>{shift + 0.0, 3.0, shift + 0.5, -1.0}))
          << backend.name();
    }
  }
}

TEST(Constant, IsOneValueForEqualElements) {
  ProgramBuilder builder;
  const Value table = builder.Constant({3, 2}, kTable);
  EXPECT_EQ(builder.Constant({3, 2}, kTable), table);
  EXPECT_NE(builder.Constant({2, 3}, kTable), table);
  EXPECT_NE(builder.FillConstant({DType::kF32, {3, 2}}, 0.5), table);
  EXPECT_THROW(builder.Constant({3}, kTable), Error);
}

}  // namespace
}  // namespace syntra
