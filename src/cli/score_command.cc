// SPDX-License-Identifier: Apache-2.0
// syntra score: log-probabilities of given targets; a line in, a line out. Ranks share the lines.
#include <CLI/CLI.hpp>

#include "base/json.h"
#include "base/text.h"
#include "cli/checkpoint_options.h"
#include "cli/commands.h"
#include "cli/line_answers.h"
#include "cli/ranks.h"
#include "cli/request_reader.h"
#include "data/example.h"
#include "data/tokenizer.h"
#include "decode/scorer.h"
#include "dist/communicator.h"
#include "run/watchdog.h"

namespace syntra {
namespace {

struct ScoreOptions {
  bool json = false;
  TaskLinesOptions lines;
};

// A line of the input, in its parts, and what is said of it.
struct ScoredLine {
  std::string input;
  std::vector<std::string> targets;
  std::vector<double> log_probabilities;  // of each target
  std::string error;                      // why the line cannot be scored; else empty
};

// Reads lines with targets.
class TargetReader {
 public:
  // `task`: with whose inputs the lines begin; or null.
  TargetReader(const LoadedModel& model, const Task* task) : inputs_(model, task) {}

  // The input has as many of the fields, with tabs between them, as the task's; the targets follow.
  ScoredLine PartsOf(const std::string& line) const {
    const std::vector<std::string> parts = Split(line, '\t');
    const TaskLines* task = inputs_.task_lines();
    const size_t fields = task ? task->field_count() : 1;
    if (parts.size() <= fields) return {.input = line};
    const std::span<const std::string> all(parts);
    return {.input = Join(all.first(fields), "\t"),
            .targets = {parts.begin() + static_cast<std::ptrdiff_t>(fields), parts.end()}};
  }

  // nullopt for a bad line, of which `error` says what is wrong.
  std::optional<ScoreRequest> Read(const ScoredLine& line, std::string* error) {
    if (line.targets.empty()) {
      const TaskLines* task = inputs_.task_lines();
      *error =
          task ? fmt::format("has no target; write the task's input ({}), a tab, and the target",
                             task->FieldsText())
               : "has no tab; write the input, a tab, and the target";
      return std::nullopt;
    }
    std::optional<DecodeRequest> input = inputs_.Read(line.input, error);
    if (!input) return std::nullopt;
    ScoreRequest request{std::move(input->ids), {}};
    for (const std::string& target : line.targets) {
      auto ids = inputs_.ReadTarget(line.input, request.ids, target, error);
      if (!ids) return std::nullopt;
      if (ids->empty()) {
        *error = "has an empty target; write some text after each tab";
        return std::nullopt;
      }
      request.targets.push_back(std::move(*ids));
    }
    return request;
  }

  void Warn() const { inputs_.Warn(); }

 private:
  RequestReader inputs_;
};

// The log-probability of each target, tabs between them.
std::string Numbers(const std::vector<double>& scores) {
  std::vector<std::string> numbers;
  numbers.reserve(scores.size());
  for (const double score : scores) numbers.push_back(fmt::format("{:.6f}", score));
  return Join(numbers, "\t");
}

// A line that is an object: the input, and its targets or an error.
std::string JsonLine(const ScoredLine& line) {
  Json targets = Json::array();
  for (size_t i = 0; i < line.log_probabilities.size(); ++i) {
    targets.push_back({{"text", line.targets[i]}, {"log_probability", line.log_probabilities[i]}});
  }
  Json object{{"input", line.input}, {"targets", targets}};
  if (!line.error.empty()) object["error"] = line.error;
  return JsonText(object);
}

// One for each line, on all ranks; a bad one is reported.
std::vector<ScoredLine> ScoreLines(const std::vector<std::string>& lines, TargetReader& reader,
                                   Scorer& scorer, Communicator& ranks, LineAnswers& answers) {
  std::vector<ScoredLine> scored;
  std::vector<ScoreRequest> requests;
  std::vector<size_t> asked;  // the line of each request
  for (size_t i = 0; i < lines.size(); ++i) {
    ScoredLine& line = scored.emplace_back(reader.PartsOf(lines[i]));
    std::string error = TextFault(lines[i]);
    if (auto request = error.empty() ? reader.Read(line, &error) : std::nullopt) {
      requests.push_back(std::move(*request));
      asked.push_back(i);
    } else {
      line.error = answers.Report(i, error);
    }
  }
  std::vector<std::vector<double>> scores =
      scorer.Score(requests, ranks, [&](size_t done) { answers.Advance(done); });
  for (size_t k = 0; k < asked.size(); ++k) {
    scored[asked[k]].log_probabilities = std::move(scores[k]);
  }
  return scored;
}

ExitCode Score(const CheckpointOptions& checkpoint, const ScoreOptions& options,
               Communicator& ranks, Watchdog& watchdog) {
  LoadedModel loaded = checkpoint.LoadOnRanks(kForGeneration, ranks, watchdog);
  CheckWritesText(loaded.config.model());
  CheckHasEos(*loaded.tokenizer);
  const std::unique_ptr<Task> task = TaskOfLines(loaded.config, options.lines, ranks);
  LineAnswers answers(ranks, watchdog);
  Scorer scorer(loaded.replica->trained(), DecodeSettingsOf(loaded.config));
  TargetReader reader(loaded, task.get());
  answers.Run([&](const std::vector<std::string>& lines) {
    std::vector<std::string> printed;
    for (const ScoredLine& line : ScoreLines(lines, reader, scorer, ranks, answers)) {
      printed.push_back(options.json ? JsonLine(line) : Numbers(line.log_probabilities));
    }
    return printed;
  });
  if (ranks.rank() == 0) reader.Warn();
  return answers.code();
}

}  // namespace

Action SetUpScore(CLI::App& app) {
  const auto checkpoint = AddCheckpointOptions(app);
  const auto options = std::make_shared<ScoreOptions>();
  app.add_flag("--json", options->json,
               "Print a JSON object for each line, with its input, and the text and the "
               "log-probability of each target");
  app.add_flag("--raw", options->lines.raw,
               "Read the inputs of a model of one task as they are, with its template or prefix "
               "already applied");
  AddTaskOption(app, &options->lines);
  return [checkpoint, options] {
    return WithRanks("score", [&](Communicator& ranks, Watchdog& watchdog) {
      return Score(*checkpoint, *options, ranks, watchdog);
    });
  };
}

}  // namespace syntra
