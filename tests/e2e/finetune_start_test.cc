// SPDX-License-Identifier: Apache-2.0
// Which model `finetune` starts from, and what `check` and `plan` know of that.
#include <gmock/gmock.h>

#include "checkpoint/layout.h"
#include "tests/base/strace.h"
#include "tests/e2e/toy_task.h"

namespace syntra {
namespace {

using testing::HasSubstr;

using Finetune = ToyTask;

// A model that went through a Hugging Face directory trains to the same bits, is continued, and
// leaves as it came.
TEST_F(Finetune, FromHuggingFace) {
  const auto convert = [&](const Path& from, const std::string& to) {
    return Run({"convert", "--input", from.string(), "--output", Directory(to).string(), "--to",
                "huggingface"});
  };
  Train("vanilla",
        {"train.steps=4", "evaluation.every=0",
         "model.mixer={ attention { heads: 2 head_size: 16 term { dot_product {} } } }"});
  const Outcome exported = convert(Directory("vanilla"), "hub");
  ASSERT_EQ(exported.code, 0) << exported.err;
  const auto from = [&](const std::string& source, const std::string& name) {
    // Hugging Face has one rate for all dropout, and another noise.
    Arguments command =
        Command(name, {"checkpoint.initial_state=FRESH", "model.dropout=0",
                       "model.mixer.attention.dropout=0", "model.cross_attention.dropout=0"});
    command[4] = Directory(source).string();
    return command;
  };
  const Outcome direct = Run(from("vanilla", "a"));
  ASSERT_EQ(direct.code, 0) << direct.err;
  const Outcome stopped =
      Run(from("hub", "b"), {.environment = {"SYNTRA_FAILPOINT=stop_evaluation@8"}});
  ASSERT_EQ(stopped.code, 75) << stopped.err;
  EXPECT_TRUE(stopped.Says("starting from the parameters of " + Directory("hub").string()))
      << stopped.err;
  const Outcome continued = Run(from("hub", "b"));
  ASSERT_EQ(continued.code, 0) << continued.err;
  EXPECT_EQ(Trace(Directory("a"), 12), Trace(Directory("b"), 12));
  EXPECT_EQ(File("a", "predictions/toy.jsonl"), File("b", "predictions/toy.jsonl"));
  EXPECT_EQ(convert(Directory("b") / "best/toy", "finetuned").code, 0);
}

// For its settings, its tokenizer and its parameters.
TEST_F(Finetune, OpensItsModelOnce) {
  if (!StraceWorks()) GTEST_SKIP() << "strace cannot trace here";
  EXPECT_EQ(
      TimesOpened(CheckpointPath("base", 4) / "shard-00000.h5", Command("a", {"train.steps=1"})),
      1);
}

// The averages that the optimizer takes over are of as many steps as the start says.
TEST_F(Finetune, TheStepsOfTheStartCount) {
  const auto start = [&](const std::string& name) {
    const Outcome outcome = Run(Command(name, {"train.steps=1"}));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Trace(Directory(name), 1);
  };
  const std::string after_4 = start("a");
  EXPECT_EQ(start("again"), after_4);
  SetAttribute("base", 4, "optimizer_steps_before", "100");
  EXPECT_NE(start("b"), after_4);
}

// A run that goes on has another newest checkpoint, and removes the one before, while the seeds are
// trained.
TEST_F(Finetune, AllSeedsStartFromOneCheckpoint) {
  const auto seeds = [&](const std::string& name, const std::string& failpoint = "") {
    return Run(Command(name, {"train.steps=4"}, {"--seeds", "2"}),
               {.environment = {"SYNTRA_FAILPOINT=" + failpoint}});
  };
  ASSERT_EQ(seeds("whole").code, 0);
  ASSERT_EQ(seeds("cut", "stop_evaluation@4").code, 75);
  EXPECT_FALSE(Exists(Directory("cut") / "seed-2"));
  Train("base", {"train.steps=6", "evaluation.every=0"});
  RemoveAll(CheckpointPath("base", 4));
  const Outcome continued = seeds("cut");
  ASSERT_EQ(continued.code, 0) << continued.err;
  for (const char* seed : {"/seed-1", "/seed-2"}) {
    EXPECT_EQ(Trace(Directory(std::string("whole") + seed), 4),
              Trace(Directory(std::string("cut") + seed), 4));
  }
  // A job of an array is a run of its own.
  const std::string kept_in = "checkpoint.initial_kept_in=" + (Directory("cut") / "start").string();
  ASSERT_EQ(Run(Command("job", {"train.steps=4", "train.seed=2", kept_in})).code, 0);
  EXPECT_EQ(Trace(Directory("job"), 4), Trace(Directory("whole/seed-2"), 4));
  // Nor does a run take another start by itself.
  Train("other", {"train.steps=3", "evaluation.every=0"});
  Arguments command = Command("new", {"train.steps=4", kept_in});
  command[4] = Directory("other").string();
  const Outcome refused = Run(command);
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(refused.Says("keeps the start of other runs, " + Directory("base").string()))
      << refused.err;
  RemoveAll(Directory("cut") / "start" / StepName(4) / kManifestName);
  const Outcome damaged = Run(Command("new", {"train.steps=4", kept_in}));
  EXPECT_EQ(damaged.code, 5);
  EXPECT_TRUE(damaged.Says("remove " + (Directory("cut") / "start").string())) << damaged.err;
  EXPECT_FALSE(Exists(Directory("new")));
}

TEST_F(Finetune, FromScratchIsAskedFor) {
  Arguments command = Command("a", {"train.steps=1"});
  command.erase(command.begin() + 3, command.begin() + 5);  // --init-from
  const Outcome refused = Run(command);
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(refused.Says("--init-from")) << refused.err;
  command.push_back("--from-scratch");
  for (const std::string& setting :
       {std::string("model {width: 32 encoder_layers: 1 decoder_layers: 1 vocabulary_size: 128}"),
        "data.tokenizer=" + tokenizer_.string(), std::string("data.extra_ids=20")}) {
    command.insert(command.end(), {"--set", setting});
  }
  const Outcome scratch = Run(command);
  EXPECT_EQ(scratch.code, 0) << scratch.err;
  // It goes on from its own checkpoints, but not from those of another start.
  EXPECT_TRUE(Run(command).Says("the run is done"));
  ASSERT_EQ(Run(Command("b", {"train.steps=1"})).code, 0);
  command.insert(command.end(), {"--set", "train.directory=" + Directory("b").string()});
  const Outcome started = Run(command);
  EXPECT_EQ(started.code, 2);
  EXPECT_TRUE(started.Says("set another train.directory to train from scratch")) << started.err;
}

TEST_F(Finetune, AStartIsNamedOnce) {
  const auto fails = [&](const Arguments& command, const std::string& says) {
    const Outcome outcome = Run(command);
    EXPECT_EQ(outcome.code, 2) << says;
    EXPECT_TRUE(outcome.Says(says)) << outcome.err;
    EXPECT_FALSE(Exists(Directory("a")));
  };
  const std::string base = Directory("base").string();
  fails(Command("a", {}, {"--from-scratch"}), "excludes");
  fails(Command("a", {"checkpoint.initial=/nowhere"}),
        "--init-from names " + base + ", but checkpoint.initial /nowhere");
  for (const std::string name : {"finetune", "check", "slurm"}) {
    Arguments command = Command("a", {"checkpoint.initial=" + base}, {"--from-scratch"});
    command.erase(command.begin() + 3, command.begin() + 5);  // --init-from
    command[0] = name;
    if (name == "slurm") command.insert(command.end(), {"--time", "5"});
    fails(command, "--from-scratch starts from no model, but checkpoint.initial names " + base);
  }
  EXPECT_EQ(Run(Command("a", {"checkpoint.initial=" + base, "train.steps=1"})).code, 0);
}

// A run that has begun does not take another model for its own.
TEST_F(Finetune, AnotherStartIsNoContinuation) {
  Train("other", {"train.steps=3", "evaluation.every=0"});
  const Outcome begun = Run(Command("a", {"train.steps=4"}));
  ASSERT_EQ(begun.code, 0) << begun.err;
  const std::string base = Directory("base").string();
  const auto refused = [&](const std::string& start, int code, const std::string& says) {
    Arguments command = Command("a", {"train.steps=4", "train.batch_size=2"});
    command[4] = start;
    const Outcome outcome = Run(command);
    EXPECT_EQ(outcome.code, code) << start;
    EXPECT_TRUE(outcome.Says(says)) << outcome.err;
    EXPECT_EQ(outcome.Says("other settings"), code == 5) << outcome.err;
  };
  const std::string other = Directory("other").string();
  refused(other, 5, "checkpoint.initial: " + base + " -> " + other);
  refused("/no/such/model", 2,
          "checkpoint.initial /no/such/model does not exist; the run started from " + base);
  // The same one under another name, and none, continue the run.
  Arguments same = Command("a", {"train.steps=4"});
  same[4] = (Directory("other") / ".." / "base/").string();
  EXPECT_EQ(Run(same).code, 0);
  same.erase(same.begin() + 3, same.begin() + 5);
  EXPECT_EQ(Run(same).code, 0);
}

// A start of another kind of mixer would be replaced by a new one.
TEST_F(Finetune, TheMixersOfTheStartStay) {
  Train("conv", {"train.steps=4", "model.mixer={ light_conv { kernel_size: 5 heads: 4 } }"});
  const auto from = [&](const Arguments& settings) {
    Arguments command = Command("a", settings);
    command[4] = Directory("conv").string();
    return command;
  };
  const Outcome refused = Run(from({"model.mixer.attention.dropout=0"}));
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(
      refused.Says("--set model.mixer.attention.dropout=0: model.mixer is attention, but "
                   "the model of " +
                   Directory("conv").string()))
      << refused.err;
  EXPECT_TRUE(refused.Says("has light_conv (model.mixer); leave model.mixer out")) << refused.err;
  const Outcome outcome = Run(from({"model.attention_dropout=0.25", "train.steps=1"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string config = File("a", "config.textproto");
  EXPECT_THAT(config, HasSubstr("light_conv {"));
  EXPECT_THAT(config, HasSubstr("    head_size: 16\n    dropout: 0.25\n"));
}

// A trained table cannot grow, and another tokenizer's pieces have no rows.
TEST_F(Finetune, WhatTheStartCannotTakeIsSaid) {
  const Outcome longer = Run(Command("a", {"data.input_length=512"}));
  EXPECT_EQ(longer.code, 2);
  EXPECT_TRUE(
      longer.Says("the model that checkpoint.initial names takes no more; lower "
                  "data.input_length"))
      << longer.err;
  Arguments check = Command("a", {"data.tokenizer=" SYNTRA_SOURCE_DIR "/data/sample/spiece.model"});
  check[0] = "check";
  const Outcome other = Run(check);
  EXPECT_THAT(other.out, HasSubstr("a checkpoint holds its tokenizer, which is taken where none"));
}

// `check` passes what `finetune` trains, and tells what it refuses.
TEST_F(Finetune, CheckKnowsTheStart) {
  const auto initial = [&](Arguments command) {
    command[0] = "check";
    command.push_back("--json");
    return ParseJson(Run(command).out).at("initial");
  };
  const Json named = initial(Command("a"));
  EXPECT_EQ(named.at("state"), "ok");
  EXPECT_THAT(named.at("detail").get<std::string>(), HasSubstr(Directory("base").string()));
  Arguments without = Command("a");
  without.erase(without.begin() + 3, without.begin() + 5);  // --init-from
  const Json lacking = initial(without);
  EXPECT_EQ(lacking.at("state"), "FAILED");
  EXPECT_TRUE(Run(without).Says(lacking.at("detail").get<std::string>()));
  without.push_back("--from-scratch");
  EXPECT_EQ(initial(without).at("state"), "ok");
}

// The sizes are the start's, not those that a configuration without a model has.
TEST_F(Finetune, PlansKnowTheStart) {
  const auto report = [&](const Arguments& command) {
    const Outcome outcome = Run(command);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return ParseJson(Split(outcome.out, '\n')[0]);
  };
  const Arguments given{(scratch_ / "toy.textproto").string(), "--set",
                        "checkpoint.initial=" + Directory("base").string()};
  const auto with = [&](Arguments command, const Arguments& more) {
    command.insert(command.end(), more.begin(), more.end());
    return command;
  };
  const Json expected = report({"plan", "--json", config_.string()}).at("parameters");
  EXPECT_EQ(report(with({"plan", "--json"}, given)).at("parameters"), expected);
  const Arguments named{given[0], "--init-from", Directory("base").string()};
  EXPECT_EQ(report(with({"plan", "--json"}, named)).at("parameters"), expected);
  EXPECT_EQ(report(with({"inspect", "memory", "--json"}, named)),
            report(with({"inspect", "memory", "--json"}, given)));
  EXPECT_EQ(report(with({"bench", "--json", "--steps", "1"}, given)).at("parameters"), expected);
  const Json shards = report(with({"inspect", "shards", "--json"}, given)).at("shards");
  EXPECT_EQ(shards.at(0).at("updated"), expected);
  const Json alive = report(with({"inspect", "memory", "--json"}, given));
  EXPECT_THAT(JsonText(alive), HasSubstr("f32[1, 32, 32]"));  // a row of 32 tokens and its width
  const Json one = report(with({"inspect", "memory", "--json", "--count", "1"}, given));
  ASSERT_EQ(one.at("alive_at_peak").size(), 1);
  EXPECT_EQ(one.at("alive_at_peak")[0], alive.at("alive_at_peak")[0]);
  EXPECT_LT(one.at("alive_at_peak")[0].at("bytes"), one.at("bytes_at_peak"));
  EXPECT_EQ(one.at("bytes_at_peak"), alive.at("bytes_at_peak"));
}

}  // namespace
}  // namespace syntra
