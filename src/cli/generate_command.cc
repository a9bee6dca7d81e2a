// SPDX-License-Identifier: Apache-2.0
// syntra generate: fills the gaps of lines; a line in, a line out.
#include <unistd.h>

#include <CLI/CLI.hpp>

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
  bool raw = false;
};

class LineFiller {
 public:
  LineFiller(BatchDecoder& decoder, const Tokenizer& tokenizer, bool raw)
      : decoder_(decoder), tokenizer_(tokenizer), raw_(raw) {}

  // One line for each; a bad one is reported and becomes an empty line.
  void Fill(std::vector<std::string>& lines) {
    std::vector<DecodeRequest> requests;
    std::vector<size_t> asked;  // the line of each request
    for (size_t i = 0; i < lines.size(); ++i) {
      ++number_;
      if (lines[i].empty() || (!raw_ && tokenizer_.FindSentinels(lines[i]).empty())) continue;
      DecodeRequest request = RequestFor(tokenizer_, lines[i]);
      if (static_cast<int64_t>(request.ids.size()) > decoder_.input_length()) {
        Report(request.ids.size());
        lines[i].clear();
        continue;
      }
      if (raw_) request.sentinels.clear();
      requests.push_back(std::move(request));
      asked.push_back(i);
    }
    const auto outputs = decoder_.Decode(requests);
    for (size_t i = 0; i < asked.size(); ++i) {
      std::string& line = lines[asked[i]];
      line = raw_ ? tokenizer_.Decode(outputs[i])
                  : FillGaps(tokenizer_, line, SpansOf(tokenizer_, outputs[i]));
    }
  }

  ExitCode code() const { return bad_lines_ > 0 ? ExitCode::kData : ExitCode::kDone; }

 private:
  void Report(size_t tokens) {
    ++bad_lines_;
    PrintError(fmt::format(
        "line {} of the input has {} tokens, but the model reads {} (its data.input_length); an "
        "empty line takes its place",
        number_, tokens, decoder_.input_length()));
  }

  BatchDecoder& decoder_;
  const Tokenizer& tokenizer_;
  const bool raw_;
  int64_t number_ = 0, bad_lines_ = 0;
};

void ShowSamples(BatchDecoder& decoder, const LoadedModel& model, const GenerateOptions& options) {
  const ValidationData data = OpenValidationData(model);
  fmt::print("{}", SamplesText(decoder, *model.tokenizer, data, options.samples, options.raw,
                               TerminalColumns(STDOUT_FILENO)));
}

ExitCode FillLines(BatchDecoder& decoder, const Tokenizer& tokenizer, bool raw) {
  LineFiller filler(decoder, tokenizer, raw);
  ArrivingLines input(STDIN_FILENO);
  for (auto lines = input.Next(); !lines.empty(); lines = input.Next()) {
    filler.Fill(lines);
    for (const std::string& line : lines) fmt::print("{}\n", line);
    FlushOutput();
  }
  return filler.code();
}

}  // namespace

Action SetUpGenerate(CLI::App& app) {
  const auto checkpoint = AddCheckpointOptions(app);
  const auto options = std::make_shared<GenerateOptions>();
  app.add_flag("--raw", options->raw,
               "Print the model's own line, with its sentinels, and not the filled text");
  app.add_option("--samples", options->samples,
                 "Show this many validation examples with the model's output instead of reading "
                 "lines")
      ->check(CLI::NonNegativeNumber);
  return [checkpoint, options] {
    LoadedModel loaded = checkpoint->Load(options->samples > 0 ? kForEvaluation : kForGeneration);
    const DataConfig& data = loaded.config.data();
    const Tokenizer& tokenizer = *loaded.tokenizer;
    CheckHasEos(tokenizer);
    const ExampleLengths lengths = RowLengths(data);
    BatchDecoder decoder(*loaded.replica, tokenizer, lengths.inputs, lengths.targets);
    if (options->samples == 0) return FillLines(decoder, tokenizer, options->raw);
    ShowSamples(decoder, loaded, *options);
    return ExitCode::kDone;
  };
}

}  // namespace syntra
