// SPDX-License-Identifier: Apache-2.0
// Text to text with two files: each line of one belongs to the same line of the other.
#include "base/error.h"
#include "data/record_reader.h"
#include "tasks/own_files.h"
#include "tasks/text_template.h"

namespace syntra {
namespace {

// One of the two files, and its next line.
class Side {
 public:
  explicit Side(const Path& path) : reader_(OpenLines(path)) { Advance(); }

  bool at_end() const { return at_end_; }
  bool IsBlank() const { return at_end_ || line_.fault == RecordFault::kEmptyLine; }
  const Record& line() const { return line_; }
  std::string path() const { return reader_->path().string(); }
  std::string name() const { return reader_->path().filename().string(); }
  int64_t lines() const { return lines_; }  // read so far
  void Advance() {
    at_end_ = !reader_->Next(&line_);
    if (!at_end_) lines_ = line_.line;
  }

 private:
  std::unique_ptr<RecordReader> reader_;
  Record line_;
  int64_t lines_ = 0;
  bool at_end_ = false;
};

// A file that ends before the other one does is not its counterpart; blank lines at the end do no
// harm.
void RequireLine(const Side& side, const Side& other) {
  if (!side.at_end() || other.IsBlank()) return;
  Fail(ExitCode::kData,
       "{} has {} lines, but {} has a line {}; each line of one must belong to the same line of "
       "the other",
       side.path(), side.lines(), other.path(), other.line().line);
}

// What is wrong with the next lines of the two files; no fault if they are a pair.
Record FaultOf(const Side& input, const Side& target) {
  for (const Side* side : {&input, &target}) {
    if (side->line().fault == RecordFault::kNone) continue;
    return {.offset = side->line().offset,
            .line = side->line().line,
            .fault = side->line().fault,
            .detail = "in " + side->name()};
  }
  return {};
}

class ParallelText : public Task {
 public:
  ParallelText(TaskTraits traits, const std::string& prefix)
      : Task(std::move(traits)), input_(TextTemplate::After(prefix, "line")) {}

  const TextTemplate* input_template() const override { return &input_; }

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
    BadRecordLedger ledger(inputs, policy);
    Side input(inputs), target(targets);
    for (; !input.at_end() || !target.at_end(); input.Advance(), target.Advance(), ++*lines) {
      RequireLine(input, target);
      RequireLine(target, input);
      if (input.IsBlank() && target.IsBlank()) continue;
      const Record fault = FaultOf(input, target);
      if (fault.fault == RecordFault::kNone) {
        sink(ExampleOf(input.line().text, target.line().text, *lines));
        ledger.CountGood();
      } else {
        ledger.CountBad(fault);
      }
    }
    ledger.Finish();
    return ledger.bad();
  }

  TaskExample ExampleOf(std::string_view input, std::string_view target, int64_t number) const {
    TaskExample example;
    example.inputs = input_.Fill([&](size_t) { return input; });
    example.targets = target;
    example.accepted_texts = {example.targets};
    example.id = std::to_string(number);
    return example;
  }

  TextTemplate input_;
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
