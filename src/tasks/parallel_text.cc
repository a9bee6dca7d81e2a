// SPDX-License-Identifier: Apache-2.0
// Text to text with two files: each line of one belongs to the same line of the other.
#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "data/record_reader.h"
#include "tasks/own_files.h"

namespace syntra {
namespace {

// One of the two files, and its next line that is not blank.
class Side {
 public:
  explicit Side(const Path& path) : reader_(OpenLines(path)) { Advance(); }

  bool at_end() const { return at_end_; }
  bool IsAt(int64_t line) const { return !at_end_ && record_.line == line; }
  int64_t line() const { return record_.line; }  // at the end, the last one
  const Record& record() const { return record_; }
  const Path& path() const { return reader_->path(); }
  void Advance() {
    Record next;
    at_end_ = !reader_->Next(&next);
    if (!at_end_) record_ = next;
  }

 private:
  std::unique_ptr<RecordReader> reader_;
  Record record_;
  bool at_end_ = false;
};

// What is wrong with line `line` of one of the two files; no fault if it is a pair. The place is
// that of the input's line or, if that is blank, of the line after it.
Record FaultOf(const Side& input, const Side& target, int64_t line) {
  Record record{.offset = input.record().offset, .line = line};
  for (const Side* side : {&input, &target}) {
    record.fault = side->IsAt(line) ? side->record().fault : RecordFault::kEmptyLine;
    if (record.fault == RecordFault::kNone) continue;
    record.detail = "in " + side->path().filename().string();
    break;
  }
  return record;
}

// A file that ends before the other one does is not its counterpart.
void RequireEqualLength(const Side& input, const Side& target) {
  if (input.at_end() == target.at_end()) return;
  const Side &shorter = input.at_end() ? input : target, &longer = input.at_end() ? target : input;
  Fail(ExitCode::kData,
       "{} ends with line {}, but {} goes on to line {} or further; each line of one must belong "
       "to the same line of the other",
       shorter.path().string(), shorter.line(), longer.path().string(), longer.line());
}

class ParallelText : public Task {
 public:
  ParallelText(TaskTraits traits, std::string prefix)
      : Task(std::move(traits)), prefix_(std::move(prefix)) {}

  int64_t Read(const TaskSplit&, std::span<const Path> files, const BadRecordPolicy& policy,
               const Sink& sink) const override {
    int64_t bad = 0, lines = 0;
    for (size_t i = 0; i < files.size(); i += 2) {
      bad += ReadPair(files[i], files[i + 1], policy, &lines, sink);
    }
    return bad;
  }

 private:
  // `lines`: those of earlier pairs; this one's are added.
  int64_t ReadPair(const Path& inputs, const Path& targets, const BadRecordPolicy& policy,
                   int64_t* lines, const Sink& sink) const {
    Side input(inputs), target(targets);
    BadRecordLedger ledger(inputs, policy);
    int64_t line = 0;
    while (!input.at_end() && !target.at_end()) {
      line = std::min(input.line(), target.line());
      const Record fault = FaultOf(input, target, line);
      if (fault.fault == RecordFault::kNone) {
        sink(ExampleOf(input.record().text, target.record().text, *lines + line - 1));
        ledger.CountGood();
      } else {
        ledger.CountBad(fault);
      }
      for (Side* side : {&input, &target}) {
        if (side->IsAt(line)) side->Advance();
      }
    }
    RequireEqualLength(input, target);
    ledger.Finish();
    *lines += line;
    return ledger.bad();
  }

  TaskExample ExampleOf(std::string_view input, std::string_view target, int64_t number) const {
    TaskExample example;
    example.inputs = prefix_ + std::string(input);
    example.targets = target;
    example.accepted_texts = {example.targets};
    example.id = std::to_string(number);
    return example;
  }

  std::string prefix_;
};

template <typename Files>
std::vector<std::string> PathsOf(const Files& pairs) {
  std::vector<std::string> paths;
  for (const ParallelFiles& pair : pairs) {
    paths.push_back(pair.input());
    paths.push_back(pair.target());
  }
  return paths;
}

}  // namespace

std::unique_ptr<Task> task_parallel_text(const TaskConfig& config) {
  const ParallelTextTask& own = config.parallel_text();
  TaskTraits traits = OwnTraits(own.name(), {.train = PathsOf(own.train()),
                                             .validation = PathsOf(own.validation()),
                                             .test = PathsOf(own.test()),
                                             .together = 2});
  traits.metrics =
      OwnMetrics({own.metric().begin(), own.metric().end()}, "bleu", Metric::Reads::kTexts);
  return std::make_unique<ParallelText>(std::move(traits), own.prefix());
}

}  // namespace syntra
