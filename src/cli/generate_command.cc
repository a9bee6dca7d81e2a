// SPDX-License-Identifier: Apache-2.0
// syntra generate: fills the gaps of lines; a line in, a line out.
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "base/json.h"
#include "base/output.h"
#include "base/terminal.h"
#include "cli/arriving_lines.h"
#include "cli/checkpoint_options.h"
#include "cli/commands.h"
#include "cli/gaps.h"
#include "cli/samples.h"
#include "data/example.h"

namespace syntra {
namespace {

struct GenerateOptions {
  int64_t samples = 0;
  bool raw = false, json = false;
  std::string strategy;  // empty: as configured
};

// What became of a line of the input: texts, the best first, or an error.
struct Answer {
  std::vector<std::string> texts;
  Hypotheses outputs;  // of each text
  std::string error;
};

class LineFiller {
 public:
  LineFiller(BatchDecoder& decoder, const Tokenizer& tokenizer, bool raw)
      : decoder_(decoder), tokenizer_(tokenizer), raw_(raw) {}

  // One answer for each. A line that asks for nothing is its own text; a bad one is reported.
  std::vector<Answer> Fill(const std::vector<std::string>& lines) {
    std::vector<Answer> answers;
    std::vector<DecodeRequest> requests;
    std::vector<size_t> asked;  // the line of each request
    for (size_t i = 0; i < lines.size(); ++i) {
      ++number_;
      Answer& answer = answers.emplace_back();
      if (lines[i].empty() || (!raw_ && tokenizer_.FindSentinels(lines[i]).empty())) {
        answer = {{lines[i]}, {{}}, ""};
        continue;
      }
      DecodeRequest request = RequestFor(tokenizer_, lines[i]);
      if (static_cast<int64_t>(request.ids.size()) > decoder_.input_length()) {
        answer.error = Report(request.ids.size());
        continue;
      }
      if (raw_) request.sentinels.clear();
      requests.push_back(std::move(request));
      asked.push_back(i);
    }
    std::vector<Hypotheses> outputs = decoder_.Decode(requests);
    for (size_t i = 0; i < asked.size(); ++i) {
      Answer& answer = answers[asked[i]];
      answer.outputs = std::move(outputs[i]);
      for (const Hypothesis& output : answer.outputs) {
        answer.texts.push_back(TextOf(lines[asked[i]], output.ids));
      }
    }
    return answers;
  }

  ExitCode code() const { return bad_lines_ > 0 ? ExitCode::kData : ExitCode::kDone; }

 private:
  std::string TextOf(const std::string& line, const std::vector<int32_t>& ids) const {
    return raw_ ? tokenizer_.Decode(ids) : FillGaps(tokenizer_, line, SpansOf(tokenizer_, ids));
  }

  std::string Report(size_t tokens) {
    ++bad_lines_;
    const std::string error = fmt::format(
        "line {} of the input has {} tokens, but the model reads {} (its "
        "data.input_length)",
        number_, tokens, decoder_.input_length());
    PrintError(error + "; an empty line takes its place");
    return error;
  }

  BatchDecoder& decoder_;
  const Tokenizer& tokenizer_;
  const bool raw_;
  int64_t number_ = 0, bad_lines_ = 0;
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

void ShowSamples(BatchDecoder& decoder, const LoadedModel& model, const GenerateOptions& options) {
  const ValidationData data = OpenValidationData(model);
  fmt::print("{}", SamplesText(decoder, *model.tokenizer, data, options.samples, options.raw,
                               TerminalColumns(STDOUT_FILENO)));
}

ExitCode FillLines(BatchDecoder& decoder, const Tokenizer& tokenizer,
                   const GenerateOptions& options) {
  LineFiller filler(decoder, tokenizer, options.raw);
  ArrivingLines input(STDIN_FILENO);
  for (auto lines = input.Next(); !lines.empty(); lines = input.Next()) {
    const std::vector<Answer> answers = filler.Fill(lines);
    for (size_t i = 0; i < lines.size(); ++i) {
      const Answer& answer = answers[i];
      const std::string best = answer.texts.empty() ? "" : answer.texts.front();
      fmt::print("{}\n", options.json ? JsonLine(lines[i], answer) : best);
    }
    FlushOutput();
  }
  return filler.code();
}

// The checkpoint under the strategy that was asked for. What --set says of it comes later.
LoadedModel LoadFor(const CheckpointOptions& checkpoint, const GenerateOptions& options) {
  CheckpointOptions with_strategy = checkpoint;
  if (!options.strategy.empty()) {
    with_strategy.overrides.insert(with_strategy.overrides.begin(),
                                   fmt::format("decoding.{}={{}}", options.strategy));
  }
  LoadedModel loaded = with_strategy.Load(options.samples > 0 ? kForEvaluation : kForGeneration);
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

}  // namespace

Action SetUpGenerate(CLI::App& app) {
  const auto checkpoint = AddCheckpointOptions(app);
  const auto options = std::make_shared<GenerateOptions>();
  app.add_option("--strategy", options->strategy,
                 "How tokens are chosen; --set decoding.beam.size=8 and the like say more of it")
      ->check(CLI::IsMember(StrategyNames()));
  app.add_flag("--json", options->json,
               "Print an object for each line, with all outputs and their log-probabilities");
  app.add_flag("--raw", options->raw,
               "Print the model's own line, with its sentinels, and not the filled text");
  app.add_option("--samples", options->samples,
                 "Show this many validation examples with the model's output instead of reading "
                 "lines")
      ->check(CLI::NonNegativeNumber);
  return [checkpoint, options] {
    LoadedModel loaded = LoadFor(*checkpoint, *options);
    const Config& config = loaded.config;
    const Tokenizer& tokenizer = *loaded.tokenizer;
    CheckHasEos(tokenizer);
    const ExampleLengths lengths = RowLengths(config.data());
    BatchDecoder decoder(loaded.replica->trained(), tokenizer,
                         {.decoding = config.decoding(),
                          .input_length = lengths.inputs,
                          .output_length = lengths.targets,
                          .log_probabilities = options->json});
    if (options->samples == 0) return FillLines(decoder, tokenizer, *options);
    ShowSamples(decoder, loaded, *options);
    return ExitCode::kDone;
  };
}

}  // namespace syntra
