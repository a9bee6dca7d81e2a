// SPDX-License-Identifier: Apache-2.0
// The official files, where they are installed: every row of them is good, and there are as many as
// are published (the rates of T5's mixtures).
#include <gtest/gtest.h>

#include <map>

#include "base/text.h"
#include "tests/data/corpus_files.h"
#include "tests/tasks/tasks.h"

namespace syntra {
namespace {

struct Count {
  std::string kind, split, directory;
  size_t examples;
};

TEST(SharedData, OfficialFilesHaveTheirPublishedSizes) {
  SYNTRA_NEEDS_SHARED_DATA();
  const std::vector<Count> counts = {
      {"cola", "train", "glue", 8551},
      {"cola", "validation", "glue", 1043},
      {"cola", "test", "glue", 1063},
      {"sst2", "train", "glue", 67349},
      {"sst2", "validation", "glue", 872},
      {"mrpc", "train", "glue", 3668},
      {"mrpc", "validation", "glue", 408},
      {"mrpc", "test", "glue", 1725},
      {"stsb", "train", "glue", 5749},
      {"stsb", "validation", "glue", 1500},
      {"qnli", "validation", "glue", 5463},
      {"rte", "train", "glue", 2490},
      {"rte", "validation", "glue", 277},
      {"mnli", "ax", "glue", 1104},
      {"boolq", "train", "superglue", 9427},
      {"boolq", "validation", "superglue", 3270},
      {"cb", "train", "superglue", 250},
      {"cb", "validation", "superglue", 56},
      {"copa", "train", "superglue", 400},
      {"copa", "validation", "superglue", 100},
      {"multirc", "train", "superglue", 27243},
      {"multirc", "validation", "superglue", 4848},
      {"superglue_rte", "train", "superglue", 2490},
      {"wsc", "train", "superglue", 259},
      {"wsc", "validation", "superglue", 104},
      {"wsc", "test", "superglue", 146},
      {"axb", "test", "superglue", 1104},
      {"axg", "test", "superglue", 356},
  };
  for (const Count& count : counts) {
    SCOPED_TRACE(count.kind + " " + count.split);
    const std::unique_ptr<Task> task = TaskOf(count.kind + " {}");
    const Path directory = SharedDataPath() / count.directory;
    if (FilesOf(SplitOf(*task, count.split), directory).empty()) continue;
    EXPECT_EQ(Read(*task, count.split, directory).size(), count.examples);
  }
}

// What the server takes for each label of a task.
std::map<std::string, std::string> LabelsAsSubmitted(const Task& task) {
  std::map<std::string, std::string> labels;
  for (const std::string& label : task.traits().labels) {
    const Prediction prediction{.example = {.inputs = "", .targets = "", .id = "0"}, .text = label};
    const std::string line = Split(task.Submission({&prediction, 1}), '\n')[1];
    labels[Split(line, '\t')[1]] = label;
  }
  return labels;
}

// Files that GLUE's server has taken come back from their own answers, byte by byte.
TEST(SharedData, SubmissionsAreLikeThoseThatTheServerTook) {
  SYNTRA_NEEDS_SHARED_DATA();
  int compared = 0;
  for (const std::string& kind : BenchmarkKinds()) {
    const std::unique_ptr<Task> task = TaskOf(kind + " {}");
    for (const TaskSplit& split : task->traits().splits) {
      const Path file = SharedDataPath() / "expected/glue_submission" / split.submission;
      if (split.submission.empty() || !Exists(file) || task->traits().labels.empty()) continue;
      SCOPED_TRACE(split.submission);
      const std::string content = ReadWholeFile(file);
      std::map<std::string, std::string> labels = LabelsAsSubmitted(*task);
      std::vector<Prediction> predictions;
      for (const std::string& line : Split(content, '\n')) {
        const std::vector<std::string> cells = Split(line, '\t');
        if (cells.size() != 2 || cells[0] == "index") continue;
        predictions.push_back({{.inputs = "", .targets = "", .id = cells[0]}, labels[cells[1]]});
      }
      EXPECT_EQ(task->Submission(predictions), content);
      ++compared;
    }
  }
  EXPECT_EQ(compared, 8);
}

}  // namespace
}  // namespace syntra
