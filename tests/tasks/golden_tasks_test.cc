// SPDX-License-Identifier: Apache-2.0
// Inputs and targets against T5's own preprocessors over TensorFlow Datasets' readers: on the
// samples (tests/golden/tasks.json), on odd rows (odd_tasks.json) and on what T5's own tests expect
// (t5_preprocess.json).
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "tests/data/corpus_files.h"
#include "tests/metrics/golden_json.h"
#include "tests/tasks/tasks.h"

namespace syntra {
namespace {

using Pair = std::pair<std::string, std::string>;

// What T5 makes of a file. Of a ReCoRD query that is evaluated it makes an example an answer and
// counts the first.
std::vector<Pair> Expected(const Json& rows, bool one_a_query) {
  std::vector<Pair> pairs;
  std::set<int64_t> queries;
  for (const Json& row : rows) {
    if (one_a_query && row.size() > 2 && !queries.insert(row[2].get<int64_t>()).second) continue;
    // T5 rounds STS-B's mark of a missing score as if it were one.
    const std::string targets = row[1];
    pairs.emplace_back(row[0], targets == "-1.0" ? kNoTarget : targets);
  }
  return pairs;
}

std::vector<Pair> PairsOf(const std::vector<TaskExample>& examples) {
  std::vector<Pair> pairs;
  for (const TaskExample& example : examples) pairs.emplace_back(example.inputs, example.targets);
  return pairs;
}

// The end of the one file that a split is read from.
bool IsReadFrom(const TaskSplit& split, const std::string& file) {
  return split.layouts[0][0].ends_with("/" + file);
}

// The folder of the files of a task's split.
using FolderOf = std::function<Path(const std::string& kind, const TaskSplit& split)>;

// Compares every file of a fixture; returns the tasks' splits that there are, as "cola/train".
std::set<std::string> ExpectReadAsT5Does(const Json& golden, const FolderOf& folder_of) {
  std::set<std::string> seen;
  for (const auto& [name, rows] : golden.items()) {
    const size_t slash = name.find('/');
    if (slash == std::string::npos || name == "wsc/DPR") continue;
    SCOPED_TRACE(name);
    const std::string kind = name.substr(0, slash), file = name.substr(slash + 1);
    const std::unique_ptr<Task> task = TaskOf(kind + " {}");
    for (const TaskSplit& split : task->traits().splits) {
      if (!IsReadFrom(split, file)) continue;
      seen.insert(kind + "/" + split.name);
      std::vector<Pair> expected = Expected(rows, split.use != TaskSplit::Use::kTrain);
      if (!split.extras.empty()) {
        std::ranges::copy(Expected(golden["wsc/DPR"], false), std::back_inserter(expected));
      }
      EXPECT_EQ(PairsOf(Read(*task, split.name, folder_of(kind, split))), expected);
    }
  }
  return seen;
}

TEST(GoldenTasks, EveryRowReadsAsT5Does) {
  const FolderOf folder_of = [](const std::string& kind, const TaskSplit& split) {
    return kind == "mrpc" && split.name != "test" ? TaskSample() / "MRPC_microsoft" : TaskSample();
  };
  const std::set<std::string> seen = ExpectReadAsT5Does(GoldenJson("tasks.json"), folder_of);
  // Nothing is left out: every split with a file in the sample is compared.
  for (const std::string& kind : BenchmarkKinds()) {
    const std::unique_ptr<Task> task = TaskOf(kind + " {}");
    for (const TaskSplit& split : task->traits().splits) {
      const bool is_there = !FilesOf(split, TaskSample()).empty();
      EXPECT_EQ(seen.contains(kind + "/" + split.name), is_there) << kind << " " << split.name;
    }
  }
}

// Markup, marks, spaces and characters of several scripts, spans at the borders of their texts.
TEST(GoldenTasks, OddRowsReadAsT5DoesToo) {
  const Json golden = GoldenJson("odd_tasks.json");
  const Path folder = ScratchDirectory("odd_tasks");
  for (const auto& [name, content] : golden["files"].items()) {
    CreateDirectories((folder / name).parent_path());
    WriteScratch(folder / name, content.get<std::string>());
  }
  const std::set<std::string> seen =
      ExpectReadAsT5Does(golden, [&](const std::string&, const TaskSplit&) { return folder; });
  // One split of each kind but MRPC, whose files have a layout of their own; three of MNLI, two of
  // ReCoRD.
  EXPECT_EQ(seen.size(), BenchmarkKinds().size() - 1 + 3);
}

// A task over records of a test of T5's, which names fields as it likes.
std::vector<TaskExample> ReadRecords(const std::string& kind, const std::string& file,
                                     const std::string& split, const std::string& content) {
  const Path directory = ScratchDirectory("t5_preprocess");
  CreateDirectories((directory / file).parent_path());
  WriteScratch(directory / file, content);
  return Read(*TaskOf(kind + " {}"), split, directory);
}

std::vector<Pair> AsPairs(const Json& out) {
  std::vector<Pair> pairs;
  for (const Json& one : out.is_array() ? out : Json::array({out})) {
    pairs.emplace_back(one["inputs"], one["targets"]);
  }
  return pairs;
}

// The entities and answers of a test of T5's, as ReCoRD's file has them.
std::string RecordLine(const Json& in) {
  std::string text = in["passage"];
  Json entities = Json::array(), answers = Json::array();
  for (const std::string entity : in["entities"]) {
    entities.push_back({{"start", text.size()}, {"end", text.size() + entity.size() - 1}});
    text += entity;
  }
  for (const std::string answer : in["answers"]) answers.push_back({{"text", answer}});
  const Json qas = Json::array({{{"query", in["query"]}, {"idx", 0}, {"answers", answers}}});
  return JsonText(
      {{"idx", 0}, {"passage", {{"text", text}, {"entities", entities}}}, {"qas", qas}});
}

TEST(GoldenTasks, ExpectationsOfT5sOwnTests) {
  int checked = 0;
  const Json golden = GoldenJson("t5_preprocess.json");
  for (const Json& test : golden["cases"]) {
    const std::string task = test["task"];
    const Json& in = test["in"];
    std::vector<TaskExample> found;
    if (task == "stsb") {
      found =
          ReadRecords("stsb", "STS-B/dev.tsv", "validation",
                      fmt::format("index\tsentence1\tsentence2\tscore\n0\t{}\t{}\t{}\n",
                                  in["sentence1"].get<std::string>(),
                                  in["sentence2"].get<std::string>(), in["label"].get<double>()));
    } else if (task == "wsc_simple") {
      const Json line = {{"text", in["text"]},
                         {"label", true},
                         {"idx", 0},
                         {"target",
                          {{"span1_text", in["span1_text"]},
                           {"span1_index", 2},
                           {"span2_text", in["span2_text"]},
                           {"span2_index", in["span2_index"]}}}};
      found = ReadRecords("wsc", "WSC/train.jsonl", "train", JsonText(line) + "\n");
    } else if (task == "wnli_simple") {
      found = ReadRecords("wnli_as_wsc", "WNLI/dev.tsv", "validation",
                          fmt::format("index\tsentence1\tsentence2\tlabel\n0\t{}\t{}\t{}\n",
                                      in["sentence1"].get<std::string>(),
                                      in["sentence2"].get<std::string>(), in["label"].get<int>()));
    } else if (task == "record") {
      const bool has_answers = !in["answers"].empty();
      found = ReadRecords("record", has_answers ? "ReCoRD/train.jsonl" : "ReCoRD/test.jsonl",
                          has_answers ? "train" : "test", RecordLine(in) + "\n");
      // Their entities are not in their passage; ours stand at its end.
      std::string tail;
      for (const std::string entity : in["entities"]) tail += entity;
      for (TaskExample& example : found) {
        ASSERT_TRUE(example.inputs.ends_with(tail));
        example.inputs.resize(example.inputs.size() - tail.size());
      }
    } else if (task == "glue" && test["benchmark"] == "multirc") {
      const Json answers =
          Json::array({{{"text", in["answer"]}, {"label", in["label"]}, {"idx", 0}}});
      const Json questions =
          Json::array({{{"question", in["question"]}, {"idx", 0}, {"answers", answers}}});
      const Json line = {{"idx", 0},
                         {"passage", {{"text", in["paragraph"]}, {"questions", questions}}}};
      found = ReadRecords("multirc", "MultiRC/val.jsonl", "validation", JsonText(line) + "\n");
    } else {
      continue;  // no task of a benchmark, or fields that no file has
    }
    ++checked;
    EXPECT_EQ(PairsOf(found), AsPairs(test["out"])) << JsonText(in);
  }
  EXPECT_EQ(checked, 10);
}

}  // namespace
}  // namespace syntra
