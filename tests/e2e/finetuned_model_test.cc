// SPDX-License-Identifier: Apache-2.0
// What `eval` and `generate` do with models that have learned tasks.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>

#include "tests/e2e/toy_task.h"

namespace syntra {
namespace {

using testing::HasSubstr;

using Finetune = ToyTask;

// `eval` says of the best checkpoint what the run said, on one rank and on two; of other files, or
// of another task, it says what is true there.
TEST_F(Finetune, TheBestCheckpointIsJudgedAgain) {
  ASSERT_EQ(Run(Command("a")).code, 0);
  const std::string best = (Directory("a") / "best/toy").string();
  const Path answers = Directory("answers");
  const Path abandoned = AbandonedFile(answers / "toy.jsonl");
  const Arguments evaluate{"eval", "--json",        "--checkpoint",
                           best,   "--predictions", answers.string()};
  const Outcome alone = Run(evaluate);
  ASSERT_EQ(alone.code, 0) << alone.err;
  EXPECT_FALSE(Exists(abandoned));
  const Json results = Results("a"), again = ParseJson(alone.out);
  EXPECT_EQ(again["tasks"], results["tasks"]);
  EXPECT_EQ(again["average"], results["average"]);
  EXPECT_EQ(again["step"], results["best_steps"]["toy"]);
  EXPECT_EQ(ReadWholeFile(answers / "toy.jsonl"), File("a", "predictions/toy.jsonl"));
  EXPECT_EQ(Run(evaluate, {.ranks = 2}).out, alone.out);

  const Outcome table = Run({"eval", "--checkpoint", best});
  EXPECT_THAT(table.out, HasSubstr("average  toy accuracy/f1\n"));
  EXPECT_THAT(table.out, HasSubstr(fmt::format("{:.1f}", again["average"].get<double>())));

  EXPECT_EQ(again["examples"], (Json{{"toy", 32}}));
  EXPECT_EQ(again["left_out_examples"], (Json{{"toy", 0}}));
  EXPECT_THAT(table.out, HasSubstr("toy: 32 examples\n"));
  // A part says that it is one.
  Arguments part = evaluate;
  part.insert(part.end(), {"--set", "evaluation.examples=5"});
  const Json of_part = ParseJson(Run(part).out);
  EXPECT_EQ(of_part["examples"], (Json{{"toy", 5}}));
  EXPECT_EQ(of_part["left_out_examples"], (Json{{"toy", 27}}));
  std::erase(part, "--json");
  EXPECT_THAT(Run(part).out,
              HasSubstr("toy: 5 examples; 27 more are left out (evaluation.examples)\n"));

  // The training split is not read.
  std::filesystem::remove(scratch_ / "train.tsv");
  WriteExamples("dev", 2);
  const Outcome fewer = Run(evaluate);
  ASSERT_EQ(fewer.code, 0) << fewer.err;
  EXPECT_EQ(Split(ReadWholeFile(answers / "toy.jsonl"), '\n').size(), 3u);
}

TEST_F(Finetune, WhatCannotBeJudgedIsSaid) {
  ASSERT_EQ(Run(Command("a", {"train.steps=1"})).code, 0);
  const Arguments evaluate{"eval", "--checkpoint", (Directory("a") / "best/toy").string()};
  // A corpus that is not read may be missing.
  Arguments without_corpus = evaluate;
  without_corpus.insert(without_corpus.end(), {"--set", "data.validation=nowhere/*.jsonl"});
  const Outcome judged = Run(without_corpus);
  EXPECT_EQ(judged.code, 0) << judged.err;
  std::filesystem::remove(scratch_ / "dev.tsv");
  const Outcome missing = Run(evaluate);
  EXPECT_EQ(missing.code, 3);
  EXPECT_TRUE(missing.Says("dev.tsv")) << missing.err;
  Arguments other = evaluate;
  other.insert(other.end(), {"--set", "data.task={ axb {} }"});
  const Outcome test_alone = Run(other);
  EXPECT_EQ(test_alone.code, 2);
  EXPECT_TRUE(test_alone.Says("no task of data.task has a validation split")) << test_alone.err;
  const Outcome corpus =
      Run({"eval", "--checkpoint", Directory("base").string(), "--predictions", "answers"});
  EXPECT_EQ(corpus.code, 2);
  EXPECT_TRUE(corpus.Says("--predictions is for models of tasks")) << corpus.err;
}

// A model of one task takes lines as its inputs: they need not say so.
TEST_F(Finetune, TheOnlyTaskIsThatOfTheLines) {
  const std::string prefixed = "data.task[0].classification.input=toy: {text}";
  ASSERT_EQ(Run(Command("a", {prefixed})).code, 0);
  const std::string model = (Directory("a") / "best/toy").string();
  const StartOptions lines{.input = "ea ga ja\nfa ha ia\n"};
  const auto generated = [&](const Arguments& more) {
    Arguments command{"generate", model};
    command.insert(command.end(), more.begin(), more.end());
    return Run(command, lines);
  };
  const Outcome alone = generated({});
  ASSERT_EQ(alone.code, 0) << alone.err;
  EXPECT_EQ(std::ranges::count(alone.out, '\n'), 2);
  EXPECT_NE(alone.out, lines.input);
  EXPECT_TRUE(alone.Says("lines are inputs of the task toy")) << alone.err;
  EXPECT_EQ(generated({"--task", "toy"}).out, alone.out);
  EXPECT_FALSE(generated({"--raw"}).Says("lines are inputs of")) << alone.err;
  // An input may be empty, as in eval: the prefix is still read.
  const Outcome empty = Run({"generate", model, "--json"}, {.input = "\n"});
  ASSERT_EQ(empty.code, 0) << empty.err;
  EXPECT_LT(ParseJson(empty.out)["outputs"][0]["log_probability"].get<double>(), 0);
}

// `score` reads inputs as `generate` does, and a target after them.
TEST_F(Finetune, ScoredLinesAreInputsOfTheTask) {
  const std::string prefixed = "data.task[0].classification.input=toy: {text}";
  ASSERT_EQ(Run(Command("a", {"train.steps=1", prefixed})).code, 0);
  const std::string model = (Directory("a") / "best/toy").string();
  const auto scored = [&](const std::string& lines, const Arguments& more) {
    Arguments command{"score", model};
    command.insert(command.end(), more.begin(), more.end());
    return Run(command, {.input = lines});
  };
  const Outcome raw = scored("toy: ea ga ja\tca\tda\n", {"--raw"});
  ASSERT_EQ(raw.code, 0) << raw.err;
  const Outcome named = scored("ea ga ja\tca\tda\n", {"--task", "toy"});
  EXPECT_EQ(named.out, raw.out) << named.err;
  const Outcome alone = scored("ea ga ja\tca\tda\n", {});
  EXPECT_EQ(alone.out, raw.out);
  EXPECT_TRUE(alone.Says("lines are inputs of the task toy")) << alone.err;
  EXPECT_NE(scored("ea ga ja\tca\tda\n", {"--raw"}).out, raw.out);

  const Outcome json = scored("ea ga ja\tca\tda\nea\n", {"--json"});
  EXPECT_EQ(json.code, 3);
  const std::vector<std::string> lines = Split(json.out, '\n');
  ASSERT_EQ(lines.size(), 3u) << json.out;
  const Json line = ParseJson(lines[0]), bad = ParseJson(lines[1]);
  EXPECT_EQ(line["input"], "ea ga ja");
  const std::vector<std::string> numbers = Split(StripSpace(raw.out), '\t');
  ASSERT_EQ(numbers.size(), 2u) << raw.out;
  for (size_t i = 0; i < 2; ++i) {
    const Json& target = line["targets"][i];
    EXPECT_EQ(target["text"], i == 0 ? "ca" : "da");
    EXPECT_NEAR(target["log_probability"].get<double>(), std::stod(numbers[i]), 1e-6);
  }
  EXPECT_TRUE(bad["targets"].empty());
  EXPECT_EQ(bad["error"],
            "line 2 of the input has no target; write the task's input (text), a tab, and the "
            "target");
}

// As `eval` does, with the log-probabilities on request.
TEST_F(Finetune, GeneratedLabelsAreRankedWhereTheTasksAre) {
  const Arguments ranked{"train.steps=1", "evaluation.rank_classification=true"};
  ASSERT_EQ(Run(Command("a", ranked)).code, 0);
  std::string inputs, answers;
  for (const std::string& line : Split(File("a", "predictions/toy.jsonl"), '\n')) {
    if (line.empty()) continue;
    inputs += ParseJson(line)["input"].get<std::string>() + "\n";
    answers += ParseJson(line)["prediction"].get<std::string>() + "\n";
  }
  const std::string model = (Directory("a") / "best/toy").string();
  const Outcome labels = Run({"generate", "--task", "toy", model}, {.input = inputs});
  ASSERT_EQ(labels.code, 0) << labels.err;
  EXPECT_EQ(labels.out, answers);
  const Outcome json = Run({"generate", "--json", model}, {.input = "ea ga ja\n"});
  const Json scores = ParseJson(json.out)["log_probabilities"];
  EXPECT_LT(scores["ca"].get<double>(), 0) << json.out;
  EXPECT_LT(scores["da"].get<double>(), 0) << json.out;
  const Outcome refused = Run({"generate", "--strategy", "beam", model}, {.input = inputs});
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(refused.Says("evaluation.rank_classification is set")) << refused.err;
}

// The task whose examples changed is named.
TEST_F(Finetune, ChangedDataAreNamed) {
  ASSERT_EQ(Run(Command("a", {"train.steps=1"})).code, 0);
  WriteExamples("train", 95);
  const Outcome outcome = Run(Command("a", {"train.steps=2"}));
  EXPECT_EQ(outcome.code, 5);
  EXPECT_TRUE(outcome.Says("the training data of toy (" + (scratch_ / "train.tsv").string() +
                           ") changed: digest "))
      << outcome.err;
}

// Another label alone makes another example.
TEST_F(Finetune, CorrectedValidationLabelsAreNoticed) {
  ASSERT_EQ(Run(Command("a", {"train.steps=1"})).code, 0);
  std::string rows = ReadWholeFile(scratch_ / "dev.tsv");
  const size_t label = rows.find("\tda\n");
  ASSERT_NE(label, rows.npos) << rows;
  ReplaceFileDurably(scratch_ / "dev.tsv", rows.replace(label, 4, "\tca\n"));
  const Outcome warned = Run(Command("a", {"train.steps=2"}));
  EXPECT_EQ(warned.code, 0) << warned.err;
  EXPECT_TRUE(warned.Says("was evaluated on other validation examples")) << warned.err;
}

TEST_F(Finetune, ChangedDataOfOneOfSeveralTasksAreNamed) {
  WriteExamples("more", 20);
  WriteExamples("more_dev", 30);
  const auto command = [&](const std::string& steps) {
    Arguments two = Command("a", {steps});
    two.insert(two.begin() + 3, {"--config", (scratch_ / "more.textproto").string()});
    return two;
  };
  ReplaceFileDurably(scratch_ / "more.textproto", R"(
data {
  task {
    classification {
      name: "more" train: "more.tsv" validation: "more_dev.tsv"
      input: "{text}" label: "ca" label: "da"
    }
  }
}
)");
  ASSERT_EQ(Run(command("train.steps=1")).code, 0);
  // Of other validation examples a run only warns.
  WriteExamples("more_dev", 31);
  const Outcome warned = Run(command("train.steps=2"));
  EXPECT_EQ(warned.code, 0) << warned.err;
  EXPECT_TRUE(warned.Says("was evaluated on other validation examples (the data of more (" +
                          (scratch_ / "more_dev.tsv").string() + ") changed)"))
      << warned.err;
  WriteExamples("more", 19);
  const Outcome outcome = Run(command("train.steps=3"));
  EXPECT_EQ(outcome.code, 5);
  EXPECT_TRUE(outcome.Says("the training data of more (" + (scratch_ / "more.tsv").string() +
                           ") changed: digest "))
      << outcome.err;
}

}  // namespace
}  // namespace syntra
