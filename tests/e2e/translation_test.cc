// SPDX-License-Identifier: Apache-2.0
// Tasks whose answers are texts: pairs of files, other ways to decode, tokenizers of their texts.
#include <algorithm>

#include "tests/e2e/toy_task.h"

namespace syntra {
namespace {

class Translation : public ToyTask {
 protected:
  void SetUp() override {
    ToyTask::SetUp();
    std::string targets;
    for (int i = 0; i < 32; ++i) {
      const char *first = i % 3 == 0 ? "ea" : "fa", *second = i % 2 == 0 ? "ga" : "ha";
      inputs_ += fmt::format("{} {} ja\n", first, second);
      targets += fmt::format("{} {}\n", second, first);
    }
    ReplaceFileDurably(scratch_ / "pairs.en", inputs_);
    ReplaceFileDurably(scratch_ / "pairs.de", targets);
  }

  std::string inputs_;
  const std::string task_ =
      "data.task={ parallel_text { name: 'pairs' prefix: 'ka { ' train { input: 'pairs.en' target: "
      "'pairs.de' } "
      "validation { input: 'pairs.en' target: 'pairs.de' } metric: ['bleu', 'sequence_accuracy'] "
      "} }";
};

// What `eval` judges is what `generate` says of the task's inputs, whichever way it decodes.
TEST_F(Translation, IsDecodedAsTheConfigurationSays) {
  const Outcome outcome = Run(Command("a", {task_, "train.steps=6"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string best = (Directory("a") / "best/pairs").string();
  std::vector<std::string> outputs;
  for (const std::string decoding :
       {"{ greedy {} }", "{ beam { size: 3 alpha: 0 } }", "{ sample { seed: 3 } }"}) {
    const Arguments settings{"--checkpoint", best, "--set", "decoding=" + decoding};
    Arguments evaluate{"eval", "--json", "--predictions", Directory("answers").string()};
    evaluate.insert(evaluate.end(), settings.begin(), settings.end());
    const Outcome judged = Run(evaluate);
    ASSERT_EQ(judged.code, 0) << judged.err;
    if (outputs.empty()) {
      EXPECT_EQ(ParseJson(judged.out)["tasks"], Results("a")["tasks"]);
    }
    std::string answers;
    for (const std::string& line :
         Split(ReadWholeFile(Directory("answers") / "pairs.jsonl"), '\n')) {
      if (!line.empty()) answers += ParseJson(line)["prediction"].get<std::string>() + '\n';
    }
    Arguments generate{"generate", "--task", "pairs"};
    generate.insert(generate.end(), settings.begin(), settings.end());
    EXPECT_EQ(answers, Run(generate, {.input = inputs_}).out) << decoding;
    outputs.push_back(answers);
  }
  EXPECT_NE(outputs[0], outputs[1]);
  EXPECT_NE(outputs[0], outputs[2]);
}

// The metrics of a run's answers, as of those of any program.
TEST_F(Translation, AnswersCanBeJudgedAlone) {
  const Outcome outcome = Run(Command("a", {task_, "train.steps=12"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::string answers, references;
  for (const std::string& line : Split(File("a", "predictions/pairs.jsonl"), '\n')) {
    if (line.empty()) continue;
    answers += ParseJson(line)["prediction"].get<std::string>() + '\n';
    references += ParseJson(line)["target"].get<std::string>() + '\n';
  }
  ReplaceFileDurably(scratch_ / "answers.txt", answers);
  ReplaceFileDurably(scratch_ / "references.txt", references);
  const Arguments files{"--answers", (scratch_ / "answers.txt").string(), "--references",
                        (scratch_ / "references.txt").string(), "--json"};
  Arguments command{"metrics", "bleu", "sequence_accuracy"};
  command.insert(command.end(), files.begin(), files.end());
  const Outcome judged = Run(command);
  ASSERT_EQ(judged.code, 0) << judged.err;
  EXPECT_EQ(ParseJson(judged.out)["metrics"], Results("a")["tasks"]["pairs"]);
  // Of labels: each line is one.
  ReplaceFileDurably(scratch_ / "answers.txt", "yes\nno\nwhat\nno\n");
  ReplaceFileDurably(scratch_ / "references.txt", "yes\nno\nno\nyes\n");
  command = {"metrics", "accuracy"};
  command.insert(command.end(), files.begin(), files.end());
  EXPECT_EQ(ParseJson(Run(command).out)["metrics"]["accuracy"], 50);
  // They have one label each, and nothing is printed before that is known.
  command = {"metrics", "bleu", "accuracy"};
  command.insert(command.end(), files.begin(), files.end());
  command.back() = "--references";
  command.push_back((scratch_ / "answers.txt").string());
  const Outcome two = Run(command);
  EXPECT_EQ(two.code, 2);
  EXPECT_TRUE(two.Says("accuracy compares each answer with one label, but there are 2 files of"))
      << two.err;
  EXPECT_EQ(two.out, "");
  // Each value has its name, even if two metrics call theirs alike; what cannot be read is counted.
  ReplaceFileDurably(scratch_ / "answers.txt", "yes\nno\n\nyes\n");
  command = {"metrics", "f1", "squad", "f1"};
  command.insert(command.end(), files.begin(), files.end());
  const Json both = ParseJson(Run(command).out);
  EXPECT_NEAR(both["metrics"]["f1/f1"].get<double>(), 80, 1e-9);
  EXPECT_EQ(both["metrics"]["squad/f1"], 75);
  EXPECT_EQ(both["metrics"]["em"], 75);
  EXPECT_EQ(both["unread_answers"], (Json{{"f1", 1}, {"squad", 1}}));
  EXPECT_EQ(both["positive_labels"], (Json{{"f1", "yes"}}));
  command.insert(command.end(), {"--label", "yes", "--label", "no"});
  const Json turned = ParseJson(Run(command).out);
  EXPECT_NEAR(turned["metrics"]["f1/f1"].get<double>(), 200 / 3.0, 1e-9);
  EXPECT_EQ(turned["positive_labels"], (Json{{"f1", "no"}}));
  std::erase(command, "--json");
  const Outcome text = Run(command);
  EXPECT_TRUE(text.Says("f1: the positive label is \"no\"")) << text.err;
  EXPECT_TRUE(text.Says("f1: 1 of 4 answers is none of the labels")) << text.err;
  EXPECT_TRUE(text.Says("squad: 1 of 4 answers is empty")) << text.err;
  command.insert(command.end(), {"--label", "yes"});
  const Outcome twice = Run(command);
  EXPECT_EQ(twice.code, 2);
  EXPECT_TRUE(twice.Says("--label yes is given twice")) << twice.err;
  EXPECT_TRUE(Run({"metrics", "f1", "--answers", "-", "--references", "-"})
                  .Says("standard input is not read here"));
  ReplaceFileDurably(scratch_ / "references.txt", "yes\nno\n");
  command = {"metrics", "accuracy"};
  command.insert(command.end(), files.begin(), files.end());
  command.pop_back();  // --json
  const Outcome shorter = Run(command);
  EXPECT_EQ(shorter.code, 3);
  EXPECT_TRUE(shorter.Says("has 2 lines, but")) << shorter.err;
  ReplaceFileDurably(scratch_ / "answers.txt", "");
  EXPECT_TRUE(Run(command).Says("answers.txt is empty"));
  command[1] = "rougeL";
  EXPECT_TRUE(Run(command).Says("did you mean \"rouge\"?"));
  command[1] = "precision";
  EXPECT_TRUE(Run(command).Says("unknown metric \"precision\"; there are accuracy, bleu"));
}

TEST_F(Translation, ATokenizerIsTrainedOnTheTextsOfTasks) {
  const Path model = scratch_ / "own.model";
  const Outcome outcome =
      Run({"tokenizer", "train", "--set", task_, "--set", "data.directory=" + scratch_.string(),
           "--output", model.string(), "--pieces", "12"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.Says("64 documents")) << outcome.err;  // inputs and targets of 32 lines
  const Outcome encoded = Run({"tokenizer", "encode", model.string()}, {.input = inputs_});
  ASSERT_EQ(encoded.code, 0) << encoded.err;
  for (const std::string& line : Split(encoded.out, '\n')) {
    EXPECT_EQ(std::ranges::count(Split(line, ' '), "2"), 0) << line;  // nothing is unknown
  }
}

}  // namespace
}  // namespace syntra
