// SPDX-License-Identifier: Apache-2.0
// syntra generate: fills the gaps of lines, goes on with them, or labels them; a line in, a line
// out. Ranks share the lines.
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "base/json.h"
#include "base/log.h"
#include "base/terminal.h"
#include "cli/checkpoint_options.h"
#include "cli/commands.h"
#include "cli/gaps.h"
#include "cli/line_answers.h"
#include "cli/line_labels.h"
#include "cli/ranks.h"
#include "cli/request_reader.h"
#include "cli/samples.h"
#include "data/example.h"
#include "data/tokenizer.h"
#include "data/validation_data.h"
#include "dist/communicator.h"
#include "plan/label_ranking.h"
#include "run/watchdog.h"

namespace syntra {
namespace {

struct GenerateOptions {
  int64_t samples = 0;
  bool json = false;
  std::string strategy;  // empty: as configured
  TaskLinesOptions lines;
};

// The result for a line of the input: texts, the best first, or an error.
struct Answer {
  std::vector<std::string> texts;
  Hypotheses outputs;  // of each text
  std::string error;
};

// Answers lines with the model's text.
class LineFiller {
 public:
  // `task`: whose inputs the lines give, and whose answers are raw; or null.
  LineFiller(const LoadedModel& model, const Task* task, bool raw)
      : tokenizer_(*model.tokenizer), reader_(model, task), raw_(raw || task) {}

  // One answer for each line, on all ranks. A line that asks for nothing is its own text; a bad one
  // is reported.
  std::vector<Answer> Fill(const std::vector<std::string>& lines, BatchDecoder& decoder,
                           Communicator& ranks, LineAnswers& answers) {
    std::vector<Answer> filled(lines.size());
    std::vector<DecodeRequest> requests;
    std::vector<size_t> asked;  // the line of each request
    for (size_t i = 0; i < lines.size(); ++i) {
      std::string error = TextFault(lines[i]);
      if (error.empty() && IsWhole(lines[i])) {
        has_whole_ = true;
        filled[i] = {{lines[i]}, {{}}, ""};
        continue;
      }
      has_gaps_ |= error.empty();
      if (auto request = error.empty() ? reader_.Read(lines[i], &error) : std::nullopt) {
        if (raw_) request->sentinels.clear();
        requests.push_back(std::move(*request));
        asked.push_back(i);
      } else {
        filled[i].error = answers.Report(i, error);
      }
    }
    std::vector<Hypotheses> outputs =
        decoder.Decode(requests, ranks, [&](size_t done) { answers.Advance(done); });
    for (size_t i = 0; i < asked.size(); ++i) {
      Answer& answer = filled[asked[i]];
      answer.outputs = std::move(outputs[i]);
      for (const Hypothesis& output : answer.outputs) {
        answer.texts.push_back(TextOf(lines[asked[i]], output.ids));
      }
    }
    return filled;
  }

  // Warns if inputs of a task were cut, or if there was nothing to generate for any line, which
  // with --raw only empty lines can do.
  void Warn() const {
    reader_.Warn();
    if (raw_ || !has_whole_ || has_gaps_) return;
    Log().warn(
        "no line has a gap such as <extra_id_0>, so nothing was generated; with --raw the model "
        "answers the lines themselves, as finetuned models do, and with --task NAME it reads them "
        "as the inputs of a task that it has learned");
  }

 private:
  // The beginning of a text, and the input of a task, may be empty.
  bool IsWhole(const std::string& line) const {
    if (reader_.goes_on() || reader_.task_lines()) return false;
    return line.empty() || (!raw_ && tokenizer_.FindSentinels(line).empty());
  }

  std::string TextOf(const std::string& line, const std::vector<int32_t>& ids) const {
    if (raw_) return tokenizer_.Decode(ids);
    return reader_.goes_on() ? GoOn(tokenizer_, line, ids)
                             : FillGaps(tokenizer_, line, SpansOf(tokenizer_, ids));
  }

  const Tokenizer& tokenizer_;
  RequestReader reader_;
  const bool raw_;
  bool has_whole_ = false, has_gaps_ = false;  // of the lines so far
};

// A line that is an object: the input, and its outputs or an error.
std::string JsonLine(const std::string& input, const Answer& answer) {
  Json outputs = Json::array();
  for (size_t i = 0; i < answer.texts.size(); ++i) {
    outputs.push_back({{"text", answer.texts[i]},
                       {"log_probability", answer.outputs[i].log_probability},
                       {"score", answer.outputs[i].score}});
  }
  Json line{{"input", input}, {"outputs", outputs}};
  if (!answer.error.empty()) line["error"] = answer.error;
  return JsonText(line);
}

void ShowSamples(BatchDecoder& decoder, Communicator& ranks, Watchdog& watchdog,
                 const LoadedModel& model, const GenerateOptions& options,
                 const OnBatch& on_batch) {
  const ValidationData data = OpenValidationData(model, ranks, watchdog);
  const SamplesForm form{.goes_on = IsLanguageModelling(model.config.data()),
                         .raw = options.lines.raw,
                         .columns = TerminalColumns(STDOUT_FILENO)};
  std::vector<ValidationSample> samples =
      ReadSamples(data, *model.tokenizer, options.samples, form.goes_on);
  AnswerSamples(samples, decoder, ranks, on_batch);
  if (ranks.rank() == 0) fmt::print("{}", SamplesText(samples, *model.tokenizer, form));
}

// `task`: whose inputs the lines give; or null.
void FillLines(BatchDecoder& decoder, Communicator& ranks, const LoadedModel& model,
               const GenerateOptions& options, const Task* task, LineAnswers& answers) {
  LineFiller filler(model, task, options.lines.raw);
  answers.Run([&](const std::vector<std::string>& lines) {
    std::vector<std::string> printed;
    const std::vector<Answer> filled = filler.Fill(lines, decoder, ranks, answers);
    for (size_t i = 0; i < lines.size(); ++i) {
      const std::string best = filled[i].texts.empty() ? "" : filled[i].texts.front();
      printed.push_back(options.json ? JsonLine(lines[i], filled[i]) : best);
    }
    return printed;
  });
  if (ranks.rank() == 0) filler.Warn();
}

// The checkpoint under the strategy that was asked for. What --set says of it comes later.
LoadedModel LoadFor(const CheckpointOptions& checkpoint, const GenerateOptions& options,
                    Communicator& ranks, Watchdog& watchdog) {
  CheckpointOptions with_strategy = checkpoint;
  if (!options.strategy.empty()) {
    with_strategy.overrides.insert(with_strategy.overrides.begin(),
                                   fmt::format("decoding.{}={{}}", options.strategy));
  }
  LoadedModel loaded = with_strategy.LoadOnRanks(
      options.samples > 0 ? kForEvaluation : kForGeneration, ranks, watchdog);
  const DecodingConfig& decoding = loaded.config.decoding();
  if (!options.strategy.empty() && StrategyName(decoding) != options.strategy) {
    Fail(ExitCode::kConfig, "--strategy {}, but --set chooses decoding.{}; remove one of them",
         options.strategy, StrategyName(decoding));
  }
  if (decoding.outputs() > 1 && !options.json) {
    Fail(ExitCode::kConfig,
         "decoding.outputs is {}, but a line shows one output; add --json, which shows all",
         decoding.outputs());
  }
  if (options.json && options.samples > 0) {
    Fail(ExitCode::kConfig, "--samples shows examples to people; remove --json");
  }
  return loaded;
}

// Whether the lines get labels instead of text. Throws Error(kConfig) for options of the other.
bool GivesLabels(const ModelConfig& model, const GenerateOptions& options) {
  const bool gives_labels = ArchitectureOf(model).outputs() == Outputs::kClasses;
  if (!options.lines.task.empty() && options.samples > 0) {
    Fail(ExitCode::kConfig, "--task says what lines mean, and --samples reads none; remove one");
  }
  if (gives_labels && (options.lines.raw || options.samples > 0 || !options.strategy.empty())) {
    Fail(
        ExitCode::kConfig,
        "a model of architecture {} predicts classes, so lines get labels; remove --raw, --samples "
        "and --strategy, which are for models that write text",
        NameOf(model.architecture()));
  }
  return gives_labels;
}

// Whether the task's labels are ranked instead of text being decoded, as eval does. Throws
// Error(kConfig) for options of decoding.
bool GivesRankedLabels(const Config& config, const Task* task, const GenerateOptions& options) {
  if (!task || !RanksLabels(config, *task)) return false;
  if (options.lines.raw || !options.strategy.empty()) {
    Fail(ExitCode::kConfig,
         "evaluation.rank_classification is set, so lines get the most probable label of the task "
         "{}; remove --raw and --strategy, or give --set evaluation.rank_classification=false",
         task->traits().name);
  }
  return true;
}

ExitCode Generate(const CheckpointOptions& checkpoint, const GenerateOptions& options,
                  Communicator& ranks, Watchdog& watchdog) {
  LoadedModel loaded = LoadFor(checkpoint, options, ranks, watchdog);
  const Config& config = loaded.config;
  const Tokenizer& tokenizer = *loaded.tokenizer;
  CheckHasEos(tokenizer);
  LineAnswers answers(ranks, watchdog);
  if (GivesLabels(config.model(), options)) {
    LabelLines(loaded, {.task = options.lines.task, .json = options.json}, ranks, answers);
    return answers.code();
  }
  const std::unique_ptr<Task> task =
      options.samples > 0 ? nullptr : TaskOfLines(config, options.lines, ranks);
  if (GivesRankedLabels(config, task.get(), options)) {
    LabelLines(loaded, {.task = task->traits().name, .json = options.json}, ranks, answers);
    return answers.code();
  }
  DecodeSettings settings = DecodeSettingsOf(config);
  settings.log_probabilities = options.json;
  BatchDecoder decoder(loaded.replica->trained(), tokenizer, settings);
  if (options.samples > 0) {
    ShowSamples(decoder, ranks, watchdog, loaded, options,
                [&](size_t examples) { answers.Advance(examples); });
  } else {
    FillLines(decoder, ranks, loaded, options, task.get(), answers);
  }
  return answers.code();
}

}  // namespace

Action SetUpGenerate(CLI::App& app) {
  const auto checkpoint = AddCheckpointOptions(app);
  const auto options = std::make_shared<GenerateOptions>();
  app.add_option(
         "--strategy", options->strategy,
         "How to choose tokens; a strategy's options are fields, e.g. --set decoding.beam.size=8")
      ->check(CLI::IsMember(StrategyNames()));
  app.add_flag(
      "--json", options->json,
      "Print a JSON object for each line, with all outputs, or the label, and log-probabilities");
  app.add_flag("--raw", options->lines.raw,
               "Print the model's output unchanged, with its sentinels, instead of the line with "
               "its gaps filled, also of lines without gaps");
  app.add_option(
         "--samples", options->samples,
         "Print this many validation examples with the model's output instead of reading lines")
      ->check(CLI::Range(0, 1000000));
  AddTaskOption(app, &options->lines);
  return [checkpoint, options] {
    return WithRanks("generate", [&](Communicator& ranks, Watchdog& watchdog) {
      return Generate(*checkpoint, *options, ranks, watchdog);
    });
  };
}

}  // namespace syntra
