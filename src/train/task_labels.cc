// SPDX-License-Identifier: Apache-2.0
#include "train/task_labels.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "data/example.h"
#include "data/normalizer.h"
#include "model/architecture.h"
#include "plan/label_ranking.h"

namespace syntra {
namespace {

// Whether a text keeps its spaces in a tokenizer: even one that is trained without normalization
// joins and trims them, and gives a space for the mark that it has instead of one.
bool KeepsItsSpaces(std::string_view text) {
  return StripSpace(text) == text && text.find("  ") == std::string_view::npos &&
         text.find(kSpaceMark) == std::string_view::npos;
}

// Why the tokenizer gives `text` for the `ids` of a label, and what helps.
std::string WritingProblem(const std::string& label, std::span<const int32_t> ids,
                           const std::string& text, const Tokenizer& tokenizer,
                           bool can_be_chosen) {
  const std::string shown = Printable(label, 80), given = Printable(text, 80);
  std::vector<std::string> remedies;
  std::string problem;
  if (std::ranges::count(ids, tokenizer.unknown_id()) > 0) {
    problem = fmt::format("cannot write the label \"{}\", it gives \"{}\"", shown, given);
    remedies.emplace_back("train one with --byte-fallback or --coverage 1");
  } else {
    problem = fmt::format("normalizes the label \"{}\" to \"{}\"", shown, given);
    if (can_be_chosen && !text.empty() && tokenizer.Decode(tokenizer.Encode(text)) == text) {
      remedies.emplace_back("choose that as the label");
    }
    if (KeepsItsSpaces(label)) {
      remedies.emplace_back("train one with --normalization identity");
    }
  }
  remedies.emplace_back("set evaluation.rank_classification: true");
  return fmt::format("the tokenizer {}; {}", problem, Join(remedies, ", or "));
}

// The first label of a task that does not do, and why; empty if all do.
std::string LabelProblem(const Task& task, bool is_ranked, const Tokenizer& tokenizer,
                         int64_t target_length) {
  std::set<std::vector<int32_t>> seen;
  for (const std::string& label : task.traits().labels) {
    const std::vector<int32_t> ids = tokenizer.Encode(label);
    const std::string text = tokenizer.Decode(ids), shown = Printable(label, 80);
    if (!is_ranked && text != label) {
      return WritingProblem(label, ids, text, tokenizer, task.traits().benchmark.empty());
    }
    if (!seen.insert(ids).second) {
      return fmt::format("to the tokenizer the label \"{}\" is the same as another", shown);
    }
    if (const int64_t length = std::ssize(ids) + 1; length > target_length) {
      return fmt::format(
          "the label \"{}\" takes {} tokens with its EOS, but targets have {}; set "
          "data.target_length: {} or choose a shorter one",
          shown, length, target_length, length);
    }
  }
  return "";
}

void CheckHasLabels(const TaskTraits& task, const ModelConfig& model) {
  if (!task.labels.empty()) return;
  Fail(ExitCode::kConfig,
       "the answers to {} are free text, which a model of architecture {} cannot give; leave the "
       "task out",
       task.name, NameOf(model.architecture()));
}

}  // namespace

std::vector<std::string> CheckTaskLabels(const Config& config, const Tokenizer& tokenizer,
                                         std::span<const std::unique_ptr<Task>> tasks) {
  if (ArchitectureOf(config.model()).outputs() != Outputs::kTokens) return {};
  const int64_t target_length = RowLengths(config.data()).targets;
  std::vector<std::string> of_benchmarks;
  for (const std::unique_ptr<Task>& task : tasks) {
    const TaskTraits& traits = task->traits();
    const std::string problem =
        LabelProblem(*task, RanksLabels(config, *task), tokenizer, target_length);
    if (problem.empty()) continue;
    if (traits.benchmark.empty()) {
      Fail(ExitCode::kConfig,
           "task \"{}\": {}. A label is the text that the model writes; label_value says what "
           "stands in the files",
           traits.name, problem);
    }
    of_benchmarks.push_back(fmt::format("task \"{}\": {}", traits.name, problem));
  }
  return of_benchmarks;
}

std::vector<int32_t> FirstClassIds(const ModelConfig& model,
                                   std::span<const std::unique_ptr<Task>> tasks) {
  if (ArchitectureOf(model).outputs() != Outputs::kClasses) return {};
  std::vector<std::pair<const TaskTraits*, int32_t>> first;  // of each task that is no diagnostic
  int32_t next = 1;
  for (const std::unique_ptr<Task>& task : tasks) {
    const TaskTraits& traits = task->traits();
    CheckHasLabels(traits, model);
    if (!traits.diagnoses.empty()) continue;
    first.emplace_back(&traits, next);
    next += static_cast<int32_t>(traits.labels.size());
  }
  if (next - 1 != model.classifier().classes()) {
    Fail(ExitCode::kConfig,
         "model.classifier.classes is {}, but the tasks have {} labels; set "
         "model.classifier.classes: {}",
         model.classifier().classes(), next - 1, next - 1);
  }
  std::vector<int32_t> ids;
  for (const std::unique_ptr<Task>& task : tasks) {
    const TaskTraits& traits = task->traits();
    const auto known = std::ranges::find_if(
        first, [&](const auto& owner) { return IsAnsweredBy(traits, *owner.first); });
    if (known == first.end()) {
      Fail(ExitCode::kConfig, "{} has the classes of {} of {}; list that task in data.task as well",
           traits.name, traits.diagnoses, traits.benchmark);
    }
    ids.push_back(known->second);
  }
  return ids;
}

}  // namespace syntra
