// SPDX-License-Identifier: Apache-2.0
// The ops of a plan; those of a timed run are compared with a plan's in tests/e2e/tools_test.cc.
#include "plan/op_work.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/plan/small_model.h"

namespace syntra {
namespace {

TEST(OpWorks, AddUpToTheStep) {
  Config config = SmallModel();
  config.mutable_train()->set_micro_batch_size(4);
  config.mutable_train()->set_recompute(TrainConfig::FEED_FORWARD);
  const auto plan = TrainingPlan::Make(config, {.ranks = 2});
  double flops = 0, rows_read = 0, updates = 0;
  for (const OpWork& work : OpsOfStep(*plan)) {
    flops += work.flops;
    if (work.op == "embedding") rows_read += work.calls;
    if (work.op == "adamw") updates += work.calls;
  }
  EXPECT_EQ(flops, (plan->flops_per_step() + plan->recomputed_flops_per_step()) / 2);
  EXPECT_EQ(rows_read, 2 * 2);  // of inputs and of targets, in two micro-batches
  EXPECT_EQ(updates, std::ssize(plan->parameters().all()));
}

TEST(OpWorks, BytesCountEachOperandOnceAndWhatIsUpdatedTwiceAndOfATableItsRows) {
  const auto plan = TrainingPlan::Make(SmallModel());
  const auto ops = OpsOfStep(*plan);
  const auto find = [&](const char* op, const char* operands) {
    const auto found = std::ranges::find_if(ops, [&](const OpWork& work) {
      return work.op == op && work.operands.starts_with(operands);
    });
    EXPECT_NE(found, ops.end()) << op;
    return found == ops.end() ? OpWork{} : *found;
  };
  const OpWork product = find("matmul_relu", "f32[16, 64, 256], f32[256, 1024]");
  EXPECT_EQ(product.flops, product.calls * 2.0 * 16 * 64 * 256 * 1024);
  const double hidden = 16 * 64 * 1024, mask = hidden / 8;  // a bit of each hidden value
  EXPECT_EQ(product.bytes / product.calls, 4.0 * (16 * 64 * 256 + 256 * 1024 + hidden) + mask);
  const OpWork update = find("adamw", "f32[256, 1024]");
  EXPECT_EQ(update.bytes / update.calls, 4.0 * (256 * 1024 + 5 + 2 * 3 * 256 * 1024));
  const OpWork rows = find("embedding", "i32[16, 64]");
  EXPECT_EQ(rows.bytes / rows.calls, 4.0 * (16 * 64 + 2 * 16 * 64 * 256));
}

}  // namespace
}  // namespace syntra
