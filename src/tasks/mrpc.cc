// SPDX-License-Identifier: Apache-2.0
// MRPC: do two sentences mean the same? Its files are GLUE's tables, or Microsoft's two files with
// GLUE's list of the pairs (by their ids) that are for development.
#include <set>

#include "tasks/label_task.h"

namespace syntra {
namespace {

constexpr const char* kTrain = "MRPC/msr_paraphrase_train.txt";
constexpr const char* kDevelopmentIds = "MRPC/dev_ids.tsv";

std::vector<TaskSplit> MrpcSplits() {
  std::vector<TaskSplit> splits = GlueSplits("MRPC");
  splits[0].layouts.push_back({kTrain, kDevelopmentIds});
  splits[1].layouts.push_back({kTrain, kDevelopmentIds});
  splits[2].layouts.push_back({"MRPC/msr_paraphrase_test.txt"});
  return splits;
}

using Pair = std::pair<std::string, std::string>;

std::set<Pair> ReadPairs(const Path& file, const BadRecordPolicy& policy) {
  TableFormat format = kTsv;
  format.header = false;
  format.columns = 2;
  std::set<Pair> pairs;
  ReadRows(
      {file, format, {{"1"}, {"2"}}}, policy,
      [&](const Row& row) {
        pairs.emplace(*row.fields[0], *row.fields[1]);
        return std::vector<TaskExample>();
      },
      [](const TaskExample&) {});
  return pairs;
}

class Mrpc : public LabelTask {
 public:
  Mrpc()
      : LabelTask({.name = "mrpc",
                   .benchmark = "glue",
                   .splits = MrpcSplits(),
                   .labels = {"not_equivalent", "equivalent"},
                   .metrics = {"f1", "accuracy"}},
                  {.input = TextTemplate("mrpc sentence1: {#1 String} sentence2: {#2 String}"),
                   .label_values = {"0", "1"},
                   .label = "Quality"}) {}

  int64_t Read(const TaskSplit& split, std::span<const Path> files, const BadRecordPolicy& policy,
               const Sink& sink) const override {
    // Microsoft's test file has the answers; GLUE's server does not give them.
    if (files.size() == 1) return LabelTask::Read(split, files, policy, sink);
    const std::set<Pair> pairs = ReadPairs(files[1], policy);
    const bool wanted = split.use == TaskSplit::Use::kValidation;
    return ReadTable(split, {files[0], kTsv}, row(), policy, sink,
                     {.fields = {{"#1 ID"}, {"#2 ID"}}, .keep = [&](const auto& ids) {
                        return pairs.contains({*ids[0], *ids[1]}) == wanted;
                      }});
  }
};

}  // namespace

std::unique_ptr<Task> task_mrpc(const TaskConfig& /*config*/) { return std::make_unique<Mrpc>(); }

}  // namespace syntra
