// SPDX-License-Identifier: Apache-2.0
// Tasks of finetuning: how the files of a benchmark become text in and text out, exactly as T5 does
// (google-research/text-to-text-transfer-transformer, t5/data), and how an answer is judged.
//
// src/tasks/README.md lists the steps to add one.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "configs/schema/config.pb.h"
#include "data/bad_record.h"
#include "metrics/metric.h"

namespace syntra {

class TextTemplate;

// Text in, text out, and the truth that answers are compared with. All texts are UTF-8 without EOS.
struct TaskExample {
  std::string inputs;
  std::string targets;  // kNoTarget where the file does not give the answer
  // Class index, or score; -1 where the file does not give it.
  double expected = -1;
  // The right answers where the answer is free text: each of them counts.
  std::vector<std::string> accepted_texts;
  // The group to which the example belongs: the answers to one MultiRC question, the repetitions of
  // one ReCoRD query.
  std::string group;
  // The benchmark's name for the example: the number of the row, "idx"; "passage/question/answer"
  // in MultiRC.
  std::string id;
};
// T5's target of an example whose answer is not known.
inline constexpr std::string_view kNoTarget = "<unk>";

struct TaskSplit {
  enum class Use {
    kTrain,
    kValidation,  // judged by the metrics
    kTest,        // predicted, and judged where the file gives the answers
  };
  std::string name;  // "train", "validation", "validation_matched", "test" ...
  Use use = Use::kTrain;
  // The files from which the split is read, relative to data.directory. If there are several
  // layouts, the first one whose files all exist is used.
  std::vector<std::vector<std::string>> layouts;
  // How many files Read needs at a time; 0: all, since the files of official layouts belong
  // together. A user's own files are read one by one, or in pairs if an example is a line of both.
  size_t files_together{0};
  // Files that are also read if they exist.
  std::vector<std::string> extras{};
  // The file that the benchmark's server takes for a test split ("MNLI-m.tsv"); else empty.
  std::string submission{};
  // The configuration names the files. Those of a test split must then be there, too; of the
  // official layouts they may be absent.
  bool is_named{false};
};
// "matched" of "validation_matched"; empty for "validation".
std::string SuffixOf(const TaskSplit& split);

struct TaskTraits {
  std::string name;  // in results, files and logs; superglue_rte is "rte", as its benchmark says
  std::string benchmark;          // "glue", "superglue", or empty
  std::vector<TaskSplit> splits;  // at most one of them for training
  // The texts of the classes, by index. Empty where the answer is a number or free text.
  std::vector<std::string> labels;
  std::vector<std::string> metrics;  // names for FindMetric, in the order of the paper's tables
  // The task of the same benchmark whose model answers this one ("rte"), if this is a diagnostic,
  // which has only a test split.
  std::string diagnoses{};
  // Whether it is part of a run's average. T5 and the paper leave WNLI out.
  bool is_averaged{true};
};

// The split that a task is trained on; null if it has none.
const TaskSplit* TrainingSplitOf(const TaskTraits& task);

// Whether the model that is the best at `owner` answers `task`: the task itself, or a diagnostic of
// it. Both benchmarks have an "rte", but only SuperGLUE's has diagnoses.
bool IsAnsweredBy(const TaskTraits& task, const TaskTraits& owner);

// The name of the file of the answers to a validation or test split, without its ending: "mnli",
// "mnli_mismatched", "mnli_test_matched".
std::string PredictionsName(const TaskTraits& task, const TaskSplit& split);

// An example, and what a model answered.
struct Prediction {
  TaskExample example;
  std::string text;
};

class Task {
 public:
  using Sink = std::function<void(TaskExample)>;

  explicit Task(TaskTraits traits) : traits_(std::move(traits)) {}
  virtual ~Task() = default;

  const TaskTraits& traits() const { return traits_; }

  // Reads `files`, those of a split that FilesOf has found, and gives every example to `sink` in
  // their order. Bad rows are named in the log and left out; more of them than the policy allows
  // throw Error(kData). Returns how many were left out.
  virtual int64_t Read(const TaskSplit& split, std::span<const Path> files,
                       const BadRecordPolicy& policy, const Sink& sink) const = 0;

  // The text that a row's fields fill to become an input; null where inputs are made otherwise.
  virtual const TextTemplate* input_template() const { return nullptr; }

  // Returns what a metric reads of an answer. By default this is the class of a label, -1 for any
  // other text.
  virtual Judgement Judge(const TaskExample& example, std::string_view text) const;

  // Whether every text that begins with `begun` is judged and submitted as `begun` itself is, so
  // that an answer need not be completed. By default, for a task with labels: no label begins with
  // `begun`, so the text cannot become one.
  virtual bool IsSettled(std::string_view begun) const;
  // Whether IsSettled can be true at all; if not, callers need not call it.
  virtual bool CanSettle() const { return !traits_.labels.empty(); }

  // The content of a split's submission file: under a header lines of index, tab and answer, as
  // GLUE wants them, or of {"idx": 0, "label": "true"}, as SuperGLUE does.
  virtual std::string Submission(std::span<const Prediction> predictions) const;

 protected:
  // An answer as the benchmark's server takes it. By default the text.
  virtual Json Submitted(const Prediction& prediction) const;
  // The index of a label, or -1.
  int ClassOf(std::string_view text) const;
  // The class to submit: 0 for a text that is no label, since servers take nothing else.
  int SubmittedClass(std::string_view text) const;

 private:
  TaskTraits traits_;
};

// The task of a configuration. Throws Error(kConfig) if it names no kind or makes no sense.
std::unique_ptr<Task> MakeTask(const TaskConfig& config);
// The tasks of data.task. Throws Error(kConfig) as MakeTask does, and if two tasks have the same
// name or would write the same file of predictions.
std::vector<std::unique_ptr<Task>> MakeTasks(const DataConfig& config);

// Where a task's files are, and what is done about bad rows.
struct TaskFolder {
  Path directory;  // data.directory; empty: the working directory
  BadRecordPolicy policy;
};
TaskFolder TaskFolderOf(const DataConfig& config);

// The files of a split that are there; none if no layout of it is complete.
std::vector<Path> FilesOf(const TaskSplit& split, const Path& directory);
// The test splits that a run answers: those whose files exist, or must exist since the
// configuration names them.
std::vector<const TaskSplit*> TestSplits(const Task& task, const Path& directory);
// The places of all files that must be there and are not, one text each: "CoLA/train.tsv", or
// "MRPC/train.tsv, or MRPC/msr_paraphrase_train.txt and MRPC/dev_ids.tsv". They are those of
// training and validation splits, and all that the configuration names.
std::vector<std::string> MissingFiles(std::span<const std::unique_ptr<Task>> tasks,
                                      const Path& directory);
// Throws one Error(kData) that lists them, with the folder in which they belong.
void RequireFiles(std::span<const std::unique_ptr<Task>> tasks, const Path& directory);

// Reads a whole split, and says how many of its rows were left out as bad. Throws Error(kData) if
// its files are not there or give no example.
std::vector<TaskExample> ReadSplit(const Task& task, const TaskSplit& split,
                                   const TaskFolder& folder, int64_t* left_out = nullptr);
// Reads the files of a split, as many at a time as belong together: those of at most 16 MiB
// through, larger ones up to their first example. Throws the same errors as ReadSplit, as far as
// what it reads shows them.
void CheckExamples(const Task& task, const TaskSplit& split, const TaskFolder& folder);

// The answer that is right most often: the label of the largest class of `train`, the first among
// equals; for scores, the most frequent target. Empty for free text.
std::string MajorityAnswer(const Task& task, std::span<const TaskExample> train);
// The labels that no example of `train` has.
std::vector<std::string> LabelsWithoutExamples(const Task& task,
                                               std::span<const TaskExample> train);

// A line of predictions/<task>.jsonl, without its end: id, input, target, prediction, and what the
// metrics read of them.
std::string PredictionLine(const Task& task, const Prediction& prediction);

}  // namespace syntra
