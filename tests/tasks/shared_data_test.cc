// SPDX-License-Identifier: Apache-2.0
// The official files, where they are installed: every row of them is good, and there are as many as
// are published (the rates of T5's mixtures).
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace syntra
