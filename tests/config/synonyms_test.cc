// SPDX-License-Identifier: Apache-2.0
// For a field name of another program, or one of another message, the error names our field.
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "config/explain.h"
#include "config/suggest.h"
#include "errors.h"

namespace syntra {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

struct Synonym {
  const char* written;
  const char* meant;  // what stands after "did you mean "
};

const Synonym kAlone[] = {
    {"lr", "\"optimizer.schedule.rate\""},
    {"learning_rate", "\"optimizer.schedule.rate\""},
    {"rate", "\"optimizer.schedule.rate\""},
    {"d_model", "\"model.width\""},
    {"hidden_size", "\"model.width\""},
    {"d_ff", "\"model.feed_forward.width\""},
    {"vocab_size", "\"model.vocabulary_size\""},
    {"num_layers", "\"model.encoder_layers\" or \"model.decoder_layers\""},
    {"num_heads",
     "\"model.mixer.attention.heads\", \"model.decoder_mixer.attention.heads\" or "
     "\"model.cross_attention.heads\""},
    {"d_kv",
     "\"model.mixer.attention.head_size\", \"model.decoder_mixer.attention.head_size\" or "
     "\"model.cross_attention.head_size\""},
    {"dropout",
     "\"model.dropout\", \"model.mixer.attention.dropout\", "
     "\"model.decoder_mixer.attention.dropout\" or \"model.cross_attention.dropout\""},
    {"dropout_rate", "\"model.dropout\""},
    {"warmup", "\"optimizer.schedule.warmup_steps\""},
    {"bs", "\"train.batch_size\""},
    {"batch_size", "\"train.batch_size\" or \"evaluation.batch_size\""},
    {"gradient_accumulation_steps",
     "\"train.micro_batch_size\" (examples at a time, not how many times)"},
    {"epochs", "\"train.steps\" (steps, not epochs)"},
    {"max_steps", "\"train.steps\""},
    {"seed", "\"train.seed\" or \"decoding.sample.seed\""},
    {"wd", "\"optimizer.weight_decay\""},
    {"grad_clip", "\"optimizer.clip_norm\""},
    {"max_grad_norm", "\"optimizer.clip_norm\""},
    {"fp16", "\"train.precision\""},
    {"bf16", "\"train.precision\""},
    {"output_dir", "\"train.directory\""},
    {"seq_len", "\"data.input_length\""},
    {"mlm_probability", "\"data.noise_density\""},
    {"tie_word_embeddings", "\"model.tied_embeddings\""},
    {"eps", "\"model.norm_epsilon\" or \"optimizer.epsilon\""},
    {"save_steps", "\"checkpoint.every\""},
    {"eval_steps", "\"evaluation.every\""},
    {"logging_steps", "\"train.log_every\""},
    {"gradient_checkpointing", "\"train.recompute\""},
    {"lr_scheduler_type", "\"optimizer.schedule.kind\""},
    {"min_lr", "\"optimizer.schedule.final_rate\""},
    {"gpu", "\"train.device\""},
    {"num_workers", "\"train.threads\""},
    // As fairseq, Marian and Hugging Face's scripts have them.
    {"max_tokens", "\"train.batch_size\" (examples, not tokens) or \"decoding.max_length\""},
    {"update_freq", "\"train.micro_batch_size\" (examples at a time, not how many times)"},
    {"warmup_updates", "\"optimizer.schedule.warmup_steps\""},
    {"total_num_update", "\"train.steps\""},
    {"save_interval_updates", "\"checkpoint.every\""},
    {"validate_interval_updates", "\"evaluation.every\""},
    {"keep_last_epochs", "\"checkpoint.keep\" (checkpoints, not epochs)"},
    {"arch", "\"model.architecture\""},
    {"mini_batch", "\"train.batch_size\""},
    {"valid_freq", "\"evaluation.every\""},
    {"save_freq", "\"checkpoint.every\""},
    {"disp_freq", "\"train.log_every\""},
    {"dim_emb", "\"model.width\""},
    {"enc_depth", "\"model.encoder_layers\""},
    {"dec_depth", "\"model.decoder_layers\""},
    {"transformer_heads",
     "\"model.mixer.attention.heads\", \"model.decoder_mixer.attention.heads\" or "
     "\"model.cross_attention.heads\""},
    {"max_source_length", "\"data.input_length\""},
    {"report_to",
     "\"train.directory\" (metrics.jsonl in it has the metrics; no other program gets them)"},
    // Written otherwise, and misspelt.
    {"LEARNING_RATE", "\"optimizer.schedule.rate\""},
    {"learing_rate", "\"optimizer.schedule.rate\""},
    {"weight_decy", "\"optimizer.weight_decay\""},
};

TEST(Synonyms, OfAnOverride) {
  for (const Synonym& each : kAlone) {
    const auto lines = OverrideErrorLines(std::string(each.written) + "=1");
    ASSERT_EQ(lines.size(), 2u) << each.written << ": " << Join(lines, "\n");
    EXPECT_EQ(lines[0], fmt::format("error: --set {0}=1: the configuration has no field \"{0}\"; "
                                    "did you mean {1}?",
                                    each.written, each.meant));
  }
}

TEST(Synonyms, OfAFile) {
  for (const Synonym& each : kAlone) {
    const auto lines = ErrorLines(std::string(each.written) + ": 1");
    ASSERT_EQ(lines.size(), 2u) << each.written << ": " << Join(lines, "\n");
    EXPECT_TRUE(lines[0].ends_with(fmt::format("did you mean {}?", each.meant))) << lines[0];
  }
}

TEST(Synonyms, NearTheMessageThatIsOpen) {
  const Synonym cases[] = {
      {"model { d_model: 1 }", "\"width\"?"},
      {"model { feed_forward { d_ff: 1 } }", "\"width\"?"},
      {"model { cross_attention { num_heads: 1 } }", "\"heads\"?"},
      {"model { mixer { num_heads: 1 } }", "\"model.mixer.attention.heads\"?"},
      {"model { lr: 1 }", "\"optimizer.schedule.rate\"?"},
      {"train { rate: 0.1 }", "\"optimizer.schedule.rate\"?"},
      {"train { bs: 1 }", "\"batch_size\"?"},
      {"evaluation { eval_steps: 1 }", "\"every\"?"},
      {"optimizer { learning_rate: 1 }", "\"optimizer.schedule.rate\"?"},
      {"model { mixer { attention { term { random { size: 1 } } max_length: 4 } } }",
       "\"model.mixer.attention.term.random.max_length\", "},
      {"model { heads: 4 }",
       "\"model.mixer.attention.heads\", \"model.decoder_mixer.attention.heads\" or "
       "\"model.cross_attention.heads\"?"},
  };
  for (const Synonym& each : cases) {
    EXPECT_NE(Join(ErrorLines(each.written), "\n").find(fmt::format("did you mean {}", each.meant)),
              std::string::npos)
        << each.written << "\n"
        << Join(ErrorLines(each.written), "\n");
  }
}

TEST(Synonyms, AtTheEndOfAPath) {
  const Synonym cases[] = {
      {"training.lr=1", "\"optimizer.schedule.rate\"?"},
      {"trainer.max_steps=1", "\"train.steps\"?"},
      {"model.d_model=1", "\"width\"?"},
      {"model.d-model=1", "\"width\"?"},
      {"train.batch-size=1", "\"batch_size\"?"},
      {"optimizr.schedule.rate=1", "\"optimizer.schedule.rate\"?"},
      {"modl.width=1", "\"model\"?"},
      {"evaluation.sample=1", "\"samples\" or \"decoding.sample\"?"},
  };
  for (const Synonym& each : cases) {
    const auto lines = OverrideErrorLines(each.written);
    ASSERT_EQ(lines.size(), 2u) << each.written;
    EXPECT_TRUE(lines[0].ends_with(fmt::format("did you mean {}", each.meant))) << lines[0];
  }
}

TEST(Synonyms, NothingIsSuggestedForWhatMeansNothing) {
  for (const char* name : {"xq", "zzzzzzzz", "hello_world"}) {
    EXPECT_EQ(OverrideErrorLines(std::string(name) + "=1")[0],
              fmt::format("error: --set {0}=1: the configuration has no field \"{0}\"", name));
  }
}

// As a task that the program does not have.
TEST(Synonyms, KindsAreListedWhereNothingIsSuggested) {
  const auto task = ErrorLines("data { task { squad {} } }");
  ASSERT_EQ(task.size(), 2u);
  EXPECT_TRUE(task[0].starts_with(
      "error: x:1:15: data.task[0] has no field \"squad\"; it has cola, sst2, mrpc, "))
      << task[0];
  EXPECT_TRUE(task[0].ends_with(", parallel_text")) << task[0];
  const auto mixer = OverrideErrorLines("model.mixer.xyzzy={}");
  EXPECT_NE(mixer.front().find("model.mixer has no field \"xyzzy\"; it has attention, "),
            std::string::npos)
      << mixer.front();
}

// A value that other programs have and this one leaves out on purpose.
TEST(Synonyms, WhatIsLeftOutIsSaid) {
  for (const char* written : {"FP16", "fp16"}) {
    EXPECT_EQ(
        OverrideErrorLines(std::string("train.precision=") + written)[0],
        fmt::format("error: --set train.precision={0}: train.precision: \"{0}\" is not one of "
                    "FP32, BF16: T5's activations overflow in it; use BF16",
                    written));
  }
  EXPECT_EQ(
      OverrideErrorLines("train.device=gpu")[0],
      "error: --set train.device=gpu: train.device: \"gpu\" is not one of AUTO, CPU, CUDA: it "
      "is called CUDA");
}

TEST(Synonyms, AreExplained) {
  EXPECT_EQ(ExplainField("lr"), ExplainField("optimizer.schedule.rate"));
}

void ForEachField(const Descriptor& message,
                  const std::function<void(const FieldDescriptor&)>& visit) {
  for (int i = 0; i < message.field_count(); ++i) {
    visit(*message.field(i));
    if (message.field(i)->message_type()) ForEachField(*message.field(i)->message_type(), visit);
  }
}

// A synonym that is a field beside it would never be found, and one with capitals neither.
TEST(Synonyms, AreNotFieldsBesideTheirs) {
  int synonyms = 0;
  ForEachField(*Config::descriptor(), [&](const FieldDescriptor& field) {
    std::set<std::string> seen;
    for (const std::string& name : OtherNames(field)) {
      EXPECT_EQ(field.containing_type()->FindFieldByName(name), nullptr) << field.full_name();
      EXPECT_TRUE(seen.insert(name).second) << field.full_name() << " " << name;
      EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"), std::string::npos)
          << name;
      ++synonyms;
    }
  });
  EXPECT_GT(synonyms, 150);
}

}  // namespace
}  // namespace syntra
