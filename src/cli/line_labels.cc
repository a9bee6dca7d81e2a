// SPDX-License-Identifier: Apache-2.0
#include "cli/line_labels.h"

#include "base/json.h"
#include "cli/task_lines.h"
#include "data/example.h"
#include "dist/communicator.h"
#include "train/answers.h"
#include "train/task_data.h"
#include "train/task_labels.h"

namespace syntra {
namespace {

// The task and where its classes begin.
TaskData ChosenData(const Config& config, const std::string& name) {
  ChosenTask chosen = ChooseTask(config, name);
  TaskData data;
  const std::vector<int32_t> classes = FirstClassIds(config.model(), MakeTasks(config.data()));
  if (!classes.empty()) data.first_class = classes[chosen.index];
  data.task = std::move(chosen.task);
  return data;
}

// Labels the blocks of lines.
class LineLabeller {
 public:
  LineLabeller(const LoadedModel& model, const TaskData& data, bool json, Communicator& ranks,
               LineAnswers& answers)
      : tokenizer_(*model.tokenizer),
        task_(*data.task),
        lines_(task_, tokenizer_, RowLengths(model.config.data()).inputs),
        json_(json),
        answers_(answers),
        answerer_(model.replica->trained(), tokenizer_, model.config, {&data, 1}, ranks) {}

  std::vector<std::string> Label(const std::vector<std::string>& lines) {
    std::vector<std::string> printed(lines.size());
    std::vector<std::vector<int32_t>> inputs;
    std::vector<size_t> asked;  // the line of each input
    for (size_t i = 0; i < lines.size(); ++i) {
      std::string error = TextFault(lines[i]);
      if (auto input = error.empty() ? lines_.Read(lines[i], &error) : std::nullopt) {
        inputs.push_back(std::move(*input));
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

  void WarnOfCut() const { lines_.WarnOfCut(); }

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
  TaskLines lines_;
  const bool json_;
  LineAnswers& answers_;
  Answerer answerer_;
};

}  // namespace

void LabelLines(const LoadedModel& model, const LineLabelsForm& form, Communicator& ranks,
                LineAnswers& answers) {
  const TaskData data = ChosenData(model.config, form.task);
  LineLabeller labeller(model, data, form.json, ranks, answers);
  answers.Run([&](const std::vector<std::string>& lines) { return labeller.Label(lines); });
  if (ranks.rank() == 0) labeller.WarnOfCut();
}

}  // namespace syntra
