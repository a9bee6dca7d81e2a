// SPDX-License-Identifier: Apache-2.0
// The programs of a plan are those that `train` asks for.
#include "plan/training_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/plan/small_model.h"

namespace syntra {
namespace {

std::shared_ptr<const Program> TrainingOf(const Config& config) {
  return TrainingPlan::Make(config)->Training();
}

int64_t CallsOf(const Program& program, const std::string& op) {
  return std::ranges::count_if(program.instructions,
                               [&](const Instruction& each) { return each.op->name == op; });
}

// The only instruction of this op.
const Attributes& AttributesOf(const Program& program, const std::string& op) {
  EXPECT_EQ(CallsOf(program, op), 1) << op;
  const auto found = std::ranges::find_if(
      program.instructions, [&](const Instruction& each) { return each.op->name == op; });
  return found->call.attributes;
}

TEST(TrainingPlans, TrainByTheObjectiveAndEvaluateByTheLoss) {
  Config config = SmallModel();
  config.mutable_train()->set_z_loss(0.02);
  config.mutable_train()->set_label_smoothing(0.15);
  config.mutable_data()->add_validation("valid.txt");
  const auto plan = TrainingPlan::Make(config);
  const Attributes trained = AttributesOf(*plan->Training(), "linear_cross_entropy_grad");
  EXPECT_EQ(trained.Number("z_loss"), 0.02);
  EXPECT_EQ(trained.Number("label_smoothing"), 0.15);
  const std::vector<BatchShape> shapes = plan->EvaluationShapes();
  ASSERT_EQ(shapes.size(), 1);
  const Attributes evaluated = AttributesOf(*plan->Evaluation(shapes[0]), "linear_cross_entropy");
  EXPECT_EQ(evaluated.Number("z_loss"), 0);
  EXPECT_EQ(evaluated.Number("label_smoothing"), 0);
}

// The keys and values of six decoder layers are then one product.
TEST(TrainingPlans, JoinCrossAttentionWhereTheyAreAskedTo) {
  Config config = SmallModel();
  const int64_t apart = CallsOf(*TrainingOf(config), "joint_matmul_grad");
  config.mutable_train()->set_joint_cross_attention(true);
  EXPECT_EQ(CallsOf(*TrainingOf(config), "joint_matmul_grad"), apart - 5);
}

}  // namespace
}  // namespace syntra
