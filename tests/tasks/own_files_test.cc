// SPDX-License-Identifier: Apache-2.0
// Tasks over a user's own files.
#include <gtest/gtest.h>

#include <limits>

#include "tests/data/corpus_files.h"
#include "tests/tasks/tasks.h"

namespace syntra {
namespace {

constexpr std::string_view kNews = "input: 'news: {text}'";

// A task over the file "a.<format>".
std::string Topics(const std::string& format, std::string_view more = kNews) {
  return fmt::format(
      "classification {{ name: 'topics' validation: 'a.{}' label: ['World', 'Sports'] label_value: "
      "['1', '2'] {} }}",
      format, more);
}

std::vector<TaskExample> ReadOwn(const std::string& task, const std::string& file,
                                 std::string_view content,
                                 const std::string& split = "validation") {
  const Path directory = ScratchDirectory("own");
  WriteScratch(directory / file, content);
  return Read(*TaskOf(task), split, directory);
}

void ExpectTopics(const std::vector<TaskExample>& found) {
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].inputs, "news: a, b");
  EXPECT_EQ(found[0].targets, "Sports");
  EXPECT_EQ(found[1].inputs, "news: \"c\"");
  EXPECT_EQ(found[1].expected, 0);
  EXPECT_EQ(found[1].id, "1");
}

TEST(OwnFiles, ClassificationReadsEveryFormatAlike) {
  ExpectTopics(ReadOwn(Topics("tsv"), "a.tsv", "label\ttext\n2\ta, b\n1\t\"c\"\n"));
  ExpectTopics(ReadOwn(Topics("csv"), "a.csv", "label,text\n2,\"a, b\"\n1,\"\"\"c\"\"\"\n"));
  ExpectTopics(
      ReadOwn(Topics("jsonl"), "a.jsonl",
              "{\"text\":\"a, b\",\"label\":2}\n{\"text\":\"\\\"c\\\"\",\"label\":\"1\"}\n"));
  ExpectTopics(
      ReadOwn(Topics("jsonl.gz"), "a.jsonl.gz",
              Gzip("{\"text\":\"a, b\",\"label\":2}\n{\"text\":\"\\\"c\\\"\",\"label\":1}\n")));
}

TEST(OwnFiles, ColumnsWithoutAHeaderHaveNumbers) {
  // AG News as it is published: class, title, description.
  const auto found = ReadOwn(Topics("csv", "header: false input: '{2}. {3}' label_field: '1'"),
                             "a.csv", "\"2\",\"Title\",\"Text\"\n\"1\",\"T\",\"X\"\n");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].inputs, "Title. Text");
  EXPECT_EQ(found[0].targets, "Sports");
}

TEST(OwnFiles, TextToText) {
  const std::string task =
      "text_to_text { name: 'summaries' train: 'a.jsonl' test: 'b.jsonl' input: 'summarize: "
      "{article.text}' "
      "target: '{summary} {{end}}' }";
  const auto found = ReadOwn(
      task, "a.jsonl", R"({"article":{"text":"An article."},"summary":"A summary."})", "train");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].inputs, "summarize: An article.");
  EXPECT_EQ(found[0].targets, "A summary. {end}");
  EXPECT_EQ(found[0].accepted_texts, std::vector<std::string>{"A summary. {end}"});
  const auto test = ReadOwn(task, "b.jsonl", R"({"article":{"text":"x"}})", "test");
  EXPECT_EQ(test[0].targets, kNoTarget);
}

// The last row has an answer, since one field is given.
TEST(OwnFiles, EmptyFieldsOfATestSplitAreNoTarget) {
  const auto read = [](const std::string& split, const std::string& target) {
    return ReadOwn(fmt::format("text_to_text {{ name: 'own' train: 'b.tsv' {}: 'a.tsv' "
                               "input: '{{text}}' target: '{}' }}",
                               split, target),
                   "a.tsv", "text\tone\ttwo\na\t\t\nb\t\ty\n", split);
  };
  for (const char* target : {"{two}", "{one}, {two}."}) {
    const auto test = read("test", target);
    ASSERT_EQ(test.size(), 2u);
    EXPECT_EQ(test[0].targets, kNoTarget) << target;
    EXPECT_TRUE(test[0].accepted_texts.empty()) << target;
    EXPECT_EQ(test[1].accepted_texts, std::vector{test[1].targets}) << target;
  }
  EXPECT_EQ(read("test", "{one}, {two}.")[1].targets, ", y.");
  const auto validation = read("validation", "{one}, {two}.");
  ASSERT_EQ(validation.size(), 2u);
  EXPECT_EQ(validation[0].targets, ", .");
  EXPECT_EQ(validation[0].accepted_texts, std::vector<std::string>{", ."});
}

TEST(OwnFiles, AnObjectIsNoText) {
  const std::string fault = DataErrorOf([] {
    ReadOwn("text_to_text { name: 'own' train: 'a.jsonl' input: '{input}' target: '{target}' }",
            "a.jsonl", R"({"input":{"a":"x0"},"target":"y"})", "train");
  });
  EXPECT_NE(fault.find("line 1: invalid value in a field; \"input\" is an object; its fields are "
                       "\"a\""),
            std::string::npos)
      << fault;
}

constexpr const char* kTranslation =
    "parallel_text { name: 'en_de' prefix: 'German: ' validation { input: 'a.en' target: 'a.de' } "
    "validation { input: 'b.en.gz' target: 'b.de' } }";

std::vector<TaskExample> ReadTranslation(const std::string& english, const std::string& german) {
  const Path directory = ScratchDirectory("parallel");
  WriteScratch(directory / "a.en", english);
  WriteScratch(directory / "a.de", german);
  WriteScratch(directory / "b.en.gz", Gzip("last\n"));
  WriteScratch(directory / "b.de", "zuletzt");
  const auto task = TaskOf(kTranslation);
  return ReadSplit(*task, SplitOf(*task, "validation"),
                   {.directory = directory, .policy = {.fail = false, .max_fraction = 0.5}});
}

TEST(OwnFiles, ParallelTextPairsLines) {
  const auto found = ReadTranslation("one\r\n{\"two\": 2}\n", "eins\nzwei");
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].inputs, "German: one");
  EXPECT_EQ(found[0].targets, "eins");
  EXPECT_EQ(found[0].accepted_texts, std::vector<std::string>{"eins"});
  EXPECT_EQ(found[1].inputs, "German: {\"two\": 2}");
  EXPECT_EQ(found[2].targets, "zuletzt");
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].id, std::to_string(i));
  EXPECT_EQ(TaskOf(kTranslation)->traits().metrics, std::vector<std::string>{"bleu"});
}

// Corpora have such lines. The others keep their partners and their numbers.
TEST(OwnFiles, PairsWithABlankOrBadLineAreLeftOut) {
  const auto found = ReadTranslation("1\n\n3\n4\n5\n6\n7\n \n9\n", "a\nb\nc\n\n\xff\nf\ng\n\ni\n");
  std::vector<std::string> pairs;
  for (const TaskExample& example : found) {
    pairs.push_back(example.id + example.inputs + example.targets);
  }
  EXPECT_EQ(pairs,
            (std::vector<std::string>{"0German: 1a", "2German: 3c", "5German: 6f", "6German: 7g",
                                      "8German: 9i", "9German: lastzuletzt"}));
}

// Both files have as many lines if what one has more is blank.
TEST(OwnFiles, ParallelFilesMayEndWithBlankLines) {
  EXPECT_EQ(ReadTranslation("1\n2\n\n\n", "a\nb").size(), 3u);
  EXPECT_EQ(ReadTranslation("1\n2\n\n", "a\nb\nc\n").size(), 3u);  // the third pair is bad
}

TEST(OwnFiles, FilesOfUnequalLengthAreNotParallel) {
  for (const auto& [english, german] :
       {std::pair{"1\n2\n3\n", "a\nb\n"}, std::pair{"1\n2\n", "a\nb\nc\n"}}) {
    const std::string error = DataErrorOf([&] { ReadTranslation(english, german); });
    EXPECT_NE(error.find("has 2 lines"), std::string::npos) << error;
    EXPECT_NE(error.find("has a line 3"), std::string::npos) << error;
  }
}

TEST(OwnFiles, FirstExamplesOfParallelTextNeedBothFiles) {
  const Path directory = ScratchDirectory("first");
  WriteScratch(directory / "a.en", "1\n");
  WriteScratch(directory / "a.de", "a\n");
  const auto task = TaskOf(
      "parallel_text { name: 'x' train { input: 't.en' target: 't.de' } test { input: 'a.en' "
      "target: 'a.de' } }");
  const TaskSplit& test = SplitOf(*task, "test");
  CheckExamples(*task, test, {.directory = directory, .policy = {}});
  WriteScratch(directory / "a.de", "");
  EXPECT_NE(DataErrorOf([&] {
              CheckExamples(*task, test, {.directory = directory});
            }).find("has a line 1"),
            std::string::npos);
  std::filesystem::remove(directory / "a.de");
  EXPECT_NE(DataErrorOf([&] { CheckExamples(*task, test, {.directory = directory}); }).find("a.de"),
            std::string::npos);
}

// Exports of TensorFlow Datasets and Hugging Face give every row of a test split a label.
TEST(OwnFiles, APlaceholderForALabelIsNone) {
  const auto read = [](const std::string& split) {
    return ReadOwn(fmt::format("classification {{ name: 'topics' train: 'b.csv' {}: 'a.csv' "
                               "label: ['no', 'yes'] label_value: ['0', '1'] }}",
                               split),
                   "a.csv", "text,label\na,-1\nb,\nc,1\n", split);
  };
  const auto test = read("test");
  ASSERT_EQ(test.size(), 3u);
  for (const size_t i : {0, 1}) {
    EXPECT_EQ(test[i].targets, kNoTarget);
    EXPECT_EQ(test[i].expected, -1);
  }
  EXPECT_EQ(test[2].targets, "yes");
  const std::string fault = DataErrorOf([&] { read("validation"); });
  EXPECT_NE(fault.find("label is \"-1\"; must be 0 or 1"), std::string::npos) << fault;
}

// The usual mistake with published tables: their classes are numbers.
TEST(OwnFiles, AnUnknownLabelPointsToLabelValue) {
  const auto fault = [](const std::string& label_value) {
    return DataErrorOf([&] {
      ReadOwn(
          "classification { name: 'topics' train: 'a.csv' validation: 'b.csv' "
          "label: ['no', 'yes'] " +
              label_value + " }",
          "a.csv", "text,label\na,1\nb,2\n", "train");
    });
  };
  EXPECT_NE(
      fault("").find("label is \"1\"; must be no or yes; if files write the labels in another "
                     "way, list what they write in label_value"),
      std::string::npos)
      << fault("");
  const std::string given = fault("label_value: ['0', '3']");
  EXPECT_NE(given.find("label is \"1\"; must be 0 or 3"), std::string::npos) << given;
  EXPECT_EQ(given.find("label_value"), std::string::npos) << given;
}

TEST(OwnFiles, ALabelIsNoPlaceholder) {
  const std::string task =
      "classification { name: 'signs' train: 'b.csv' test: 'a.csv' label: ['minus', 'none'] "
      "label_value: ['-1', ''] }";
  const auto found = ReadOwn(task, "a.csv", "text,label\na,-1\nb,\n", "test");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].targets, "minus");
  EXPECT_EQ(found[1].targets, "none");
}

// As tables are exported whose last columns are empty.
TEST(OwnFiles, ColumnsWithoutANameDoNoHarm) {
  const auto found =
      ReadOwn(Topics("csv"), "a.csv", "text,label,,\n\"a, b\",2,,\n\"\"\"c\"\"\",1,,\n");
  ExpectTopics(found);
}

// Answers are told apart by their ids.
TEST(OwnFiles, RowsAreCountedAcrossFiles) {
  const Path directory = ScratchDirectory("several");
  WriteScratch(directory / "a.csv", "text,label\na,1\nb,2\n");
  WriteScratch(directory / "b.csv", "text,label\nc,1\nd,2\n");
  for (const char* task :
       {"classification { name: 'own' validation: ['a.csv', 'b.csv'] label: ['1', '2'] }",
        "text_to_text { name: 'own' validation: ['a.csv', 'b.csv'] input: '{text}' target: "
        "'{label}' }"}) {
    std::vector<std::string> ids;
    for (const TaskExample& example : Read(*TaskOf(task), "validation", directory)) {
      ids.push_back(example.id);
    }
    EXPECT_EQ(ids, (std::vector<std::string>{"0", "1", "2", "3"})) << task;
  }
}

// The error of a configuration that makes no sense.
std::string Refusal(const std::string& task) {
  try {
    TaskOf(task);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kConfig) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "accepted: " << task;
  return "";
}

TEST(OwnFiles, WhatMakesNoSenseIsRefused) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"classification { name: 'a' train: 'a.tsv' label: 'x' }", "two labels or more"},
      {"classification { name: 'a' train: 'a.tsv' label: ['x', 'x'] }", "all different"},
      {"classification { name: 'a' train: 'a.tsv' label: ['x', 'y'] label_value: '0' }",
       "one value for each"},
      {"classification { name: 'a' train: 'a.txt' label: ['x', 'y'] }", "a.txt"},
      {"classification { name: 'a' label: ['x', 'y'] }", "neither a train nor a validation file"},
      {"classification { name: 'a/b' train: 'a.tsv' label: ['x', 'y'] }", "a/b"},
      {"classification { name: 'a\\tb' train: 'a.tsv' label: ['x', 'y'] }",
       "a task's name \"a\\x09b\" must be one that a file can have"},
      {"text_to_text { name: 'a\\nb' train: 'a.tsv' }", "a\\x0ab"},
      {"parallel_text { name: 'a\\033[2J' train { input: 'a' target: 'b' } }", "a\\x1b[2J"},
      {"text_to_text { name: '" + std::string(201, 'a') + "' train: 'a.tsv' }",
       "at most 200 bytes"},
      {"classification { name: 'a' train: 'a.tsv' label: ['x', 'y'] metric: 'acuracy' }",
       "did you mean \"accuracy\""},
      {"classification { name: 'a' train: 'a.tsv' label: ['x', 'y'] metric: 'squad' }", "squad"},
      {"classification { name: 'a' train: 'a.tsv' label: ['x', 'y', 'z'] metric: 'f1' }",
       "f1 is for 2 labels, but there are 3"},
      {"text_to_text { name: 'a' train: 'a.tsv' metric: 'accuracy' }", "accuracy"},
      {"text_to_text { name: 'a' train: 'a.tsv' input: '{x' }", "{x"},
      {"text_to_text { name: 'a' train: 'a.tsv' input: 'x' }", "no field"},
      {"classification { name: 'a' train: 'a.tsv' label: ['', 'x'] }", "must not be empty"},
      {"text_to_text { name: 'a' train: 'a.tsv' metric: ['rouge', 'bleu', 'rouge'] }",
       "name each once"},
      {"parallel_text { name: 'a' }", "neither a train nor a validation file"},
      {"parallel_text { name: 'a' train { input: 'a' target: 'b' } metric: 'f1' }", "bleu"},
  };
  for (const auto& [task, part] : cases) {
    const std::string message = Refusal(task);
    EXPECT_NE(message.find(part), std::string::npos) << task << "\n" << message;
  }
}

TEST(OwnFiles, LongNamesAreThoseOfFiles) {
  const std::string name = std::string(196, 'a') + " \u00fc!";
  const auto task = TaskOf("text_to_text { name: '" + name + "' train: 'a.tsv' test: 'b.tsv' }");
  // As it is written at first.
  const std::string file = PredictionsName(task->traits(), SplitOf(*task, "test")) + ".jsonl.tmp-" +
                           std::to_string(std::numeric_limits<int64_t>::max());
  EXPECT_LE(file.size(), 255u) << file;
}

TEST(OwnFiles, AMissingColumnIsNamed) {
  const std::string message =
      DataErrorOf([] { ReadOwn(Topics("tsv"), "a.tsv", "label\tbody\n1\tx\n"); });
  EXPECT_NE(message.find("no column \"text\""), std::string::npos) << message;
  EXPECT_NE(DataErrorOf([] {
              ReadOwn(Topics("tsv", "header: false"), "a.tsv", "1\tx\n");
            }).find("\"text\""),
            std::string::npos);
}

}  // namespace
}  // namespace syntra
