// SPDX-License-Identifier: Apache-2.0
// Which fields may change when a run continues.
#include "config/change.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "errors.h"

namespace syntra {
namespace {

void CollectOptions(const google::protobuf::Descriptor& message, const std::string& path,
                    std::set<std::string>* found) {
  for (int i = 0; i < message.field_count(); ++i) {
    const auto& field = *message.field(i);
    const std::string name = path + field.name();
    if (field.options().HasExtension(change)) found->insert(name);
    if (field.message_type()) CollectOptions(*field.message_type(), name + ".", found);
  }
}

// A field that is added decides the numbers until someone has thought about it.
TEST(Change, OnlyTheseMayChange) {
  std::set<std::string> found;
  CollectOptions(*Config::descriptor(), "", &found);
  const std::set<std::string> expected{"checkpoint",
                                       "cluster",
                                       "data.directory",
                                       "data.max_bad_fraction",
                                       "data.on_bad_record",
                                       "data.prepared",
                                       "data.tokenizer",
                                       "data.train",
                                       "data.validation",
                                       "decoding",
                                       "evaluation",
                                       "evaluation.samples",
                                       "optimizer.schedule",
                                       "train.compare_replicas_every",
                                       "train.device",
                                       "train.directory",
                                       "train.log_every",
                                       "train.loss_spikes",
                                       "train.max_rollbacks",
                                       "train.max_skipped_steps",
                                       "train.micro_batch_size",
                                       "train.profile",
                                       "train.recompute",
                                       "train.sharding",
                                       "train.steps",
                                       "train.stop_after_minutes",
                                       "train.threads"};
  EXPECT_EQ(found, expected);
}

TEST(Change, IsThatOfTheFieldOrOfTheMessageAroundIt) {
  EXPECT_EQ(ChangeOf("model.width"), REFUSED);
  EXPECT_EQ(ChangeOf("model.mixer.attention.term[1].random.max_length"), REFUSED);
  EXPECT_EQ(ChangeOf("optimizer.beta1"), REFUSED);
  EXPECT_EQ(ChangeOf("optimizer.schedule.rate"), SCHEDULED);
  EXPECT_EQ(ChangeOf("train.steps"), SCHEDULED);
  EXPECT_EQ(ChangeOf("evaluation.batches"), JUDGING);
  EXPECT_EQ(ChangeOf("decoding.beam.size"), JUDGING);
  EXPECT_EQ(ChangeOf("evaluation.samples"), FREE);
  EXPECT_EQ(ChangeOf("data.train[3]"), MOVED);
}

TEST(Change, DifferencesBySort) {
  const ConfigChanges changes =
      ChangesBetween(ConfigOfText("train { steps: 100 log_every: 1 micro_batch_size: 2 seed: 1 } "
                                  "evaluation { examples: 9 }"),
                     ConfigOfText("train { steps: 200 log_every: 5 micro_batch_size: 4 seed: 2 } "
                                  "evaluation { examples: 8 }"));
  EXPECT_EQ(changes.refused, std::vector<std::string>{"train.seed: 1 -> 2"});
  EXPECT_EQ(changes.scheduled, std::vector<std::string>{"train.steps: 100 -> 200"});
  EXPECT_EQ(changes.judging, std::vector<std::string>{"evaluation.examples: 9 -> 8"});
  const std::vector<std::string> free{"train.micro_batch_size: 2 -> 4", "train.log_every: 1 -> 5"};
  EXPECT_EQ(changes.free, free);
}

TEST(Change, MicroBatchesAreTheLeavesOfAnExactSum) {
  const auto with = [](int rows) {
    return ConfigOfText(fmt::format("train {{ reduction: EXACT micro_batch_size: {} }}", rows));
  };
  EXPECT_EQ(ChangesBetween(with(2), with(4)).refused,
            std::vector<std::string>{"train.micro_batch_size: 2 -> 4"});
}

}  // namespace
}  // namespace syntra
