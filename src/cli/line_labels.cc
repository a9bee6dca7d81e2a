// SPDX-License-Identifier: Apache-2.0
#include "cli/line_labels.h"

#include <algorithm>

#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "data/example.h"
#include "tasks/text_template.h"
#include "train/answers.h"
#include "train/task_classes.h"

namespace syntra {
namespace {

// The task `name`, or the only one.
TaskData ChosenTask(const Config& config, const std::string& name) {
  std::vector<std::unique_ptr<Task>> tasks = MakeTasks(config.data());
  if (tasks.empty()) {
    Fail(ExitCode::kConfig,
         "the checkpoint's configuration has no data.task, which says what the model's classes "
         "mean; give --set 'data.task={{...}}' with the tasks that it has learned");
  }
  const std::vector<int32_t> first_classes = FirstClassIds(config.model(), tasks);
  std::vector<std::string> names;
  for (const std::unique_ptr<Task>& task : tasks) names.push_back(task->traits().name);
  const bool is_only = name.empty() && names.size() == 1;
  const auto found = is_only ? names.begin() : std::ranges::find(names, name);
  if (found == names.end()) {
    Fail(ExitCode::kConfig, "{}; choose one by --task: {}",
         name.empty() ? "the model has learned several tasks"
                      : fmt::format("the model has learned no task \"{}\"", name),
         Join(names, ", "));
  }
  const auto index = found - names.begin();
  TaskData chosen;
  chosen.task = std::move(tasks[index]);
  chosen.first_class = first_classes[index];
  return chosen;
}

// Lines as the task's files would give them to the model.
class InputForm {
 public:
  explicit InputForm(const Task& task) : template_(TemplateOf(task)) {
    for (const std::string& field : template_.fields()) {
      const auto known = std::ranges::find(fields_, field);
      places_.push_back(known - fields_.begin());
      if (known == fields_.end()) fields_.push_back(field);
    }
  }

  // nullopt if the line has other fields; `error` says so then.
  std::optional<std::string> Apply(const std::string& line, std::string* error) const {
    // The only field may have tabs in it.
    const std::vector<std::string> values =
        fields_.size() == 1 ? std::vector{line} : Split(line, '\t');
    if (values.size() == fields_.size()) {
      return template_.Fill([&](size_t i) { return std::string_view(values[places_[i]]); });
    }
    *error = fmt::format(
        "has the wrong number of fields, {}; the task's input has {}: {}; write "
        "them in this order with tabs between them",
        values.size(), fields_.size(), Join(fields_, ", "));
    return std::nullopt;
  }

 private:
  static const TextTemplate& TemplateOf(const Task& task) {
    if (!task.input_template()) {
      Fail(ExitCode::kConfig,
           "the inputs of {} are more than fields in a text, so lines cannot give them; write the "
           "examples as its validation file, and use syntra eval --predictions",
           task.traits().name);
    }
    return *task.input_template();
  }

  const TextTemplate& template_;
  std::vector<std::string> fields_;  // each once, in the template's order
  std::vector<size_t> places_;       // which of them each of the template's fields is
};

// Labels the blocks of lines.
class LineLabeller {
 public:
  LineLabeller(const LoadedModel& model, const TaskData& data, bool json, Communicator& ranks,
               LineAnswers& answers)
      : tokenizer_(*model.tokenizer),
        task_(*data.task),
        form_(task_),
        input_length_(RowLengths(model.config.data()).inputs),
        json_(json),
        answers_(answers),
        answerer_(model.replica->trained(), tokenizer_, model.config, {&data, 1}, ranks) {}

  std::vector<std::string> Label(const std::vector<std::string>& lines) {
    std::vector<std::string> printed(lines.size());
    std::vector<std::vector<int32_t>> inputs;
    std::vector<size_t> asked;  // the line of each input
    for (size_t i = 0; i < lines.size(); ++i) {
      std::string error;
      const std::optional<std::string> text = form_.Apply(lines[i], &error);
      if (text) {
        bool is_cut = false;
        inputs.push_back(IdsWithEos(tokenizer_, *text, input_length_, &is_cut));
        cut_ += is_cut;
        asked.push_back(i);
        continue;
      }
      error = answers_.Report(i, error);
      if (json_) printed[i] = JsonText({{"input", lines[i]}, {"error", error}});
    }
    const std::vector<std::vector<double>> scores = answerer_.LabelScores(
        task_, std::move(inputs), [&](size_t done) { answers_.Advance(done); });
    for (size_t k = 0; k < asked.size(); ++k) {
      printed[asked[k]] = Answer(lines[asked[k]], scores[k]);
    }
    return printed;
  }

  // How many lines were longer than what the model reads.
  int64_t cut() const { return cut_; }

 private:
  std::string Answer(const std::string& line, const std::vector<double>& scores) const {
    const std::vector<std::string>& labels = task_.traits().labels;
    const std::string& best = labels[MostProbable(scores)];
    if (!json_) return best;
    Json of_labels = Json::object();
    for (size_t i = 0; i < labels.size(); ++i) of_labels[labels[i]] = scores[i];
    return JsonText({{"input", line}, {"label", best}, {"log_probabilities", of_labels}});
  }

  const Tokenizer& tokenizer_;
  const Task& task_;
  const InputForm form_;
  const int64_t input_length_;
  const bool json_;
  LineAnswers& answers_;
  Answerer answerer_;
  int64_t cut_ = 0;
};

}  // namespace

void LabelLines(const LoadedModel& model, const LineLabelsForm& form, Communicator& ranks,
                LineAnswers& answers) {
  const TaskData data = ChosenTask(model.config, form.task);
  LineLabeller labeller(model, data, form.json, ranks, answers);
  answers.Run([&](const std::vector<std::string>& lines) { return labeller.Label(lines); });
  if (labeller.cut() == 0 || ranks.rank() != 0) return;
  Log().warn(
      "{} lines have more tokens than the model reads (its data.input_length); what is beyond was "
      "left out, as in training",
      labeller.cut());
}

}  // namespace syntra
