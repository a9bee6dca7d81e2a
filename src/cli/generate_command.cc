// syntra generate: fills sentinels; a line in, a line out.
#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/checkpoint_options.h"
#include "cli/commands.h"
#include "decode/greedy.h"

namespace syntra {
namespace {

// Decodes texts one by one: the model's output for inputs with sentinels.
class Filler {
 public:
  explicit Filler(LoadedModel& loaded)
      : config_(loaded.config),
        tokenizer_(*loaded.tokenizer),
        lengths_(ExampleSettings::From(config_.data(), tokenizer_)),
        decoder_(loaded.replica->MakeDecoder({1, lengths_.input_length, lengths_.target_length})) {}

  const Tokenizer& tokenizer() const { return tokenizer_; }

  // `ids` without EOS. Throws Error(kData) if they do not fit the model's input.
  std::string Fill(std::vector<int32_t> ids) {
    ids.push_back(tokenizer_.eos_id());
    if (static_cast<int64_t>(ids.size()) > lengths_.input_length) {
      Fail(ExitCode::kData, "an input of {} tokens is longer than data.input_length {}", ids.size(),
           lengths_.input_length);
    }
    std::vector<int32_t> segments(ids.size(), 1);
    ids.resize(lengths_.input_length);
    segments.resize(lengths_.input_length);
    return tokenizer_.Decode(decoder_->Decode(ids, segments, tokenizer_.eos_id()).front());
  }

 private:
  const Config& config_;
  const Tokenizer& tokenizer_;
  ExampleSettings lengths_;
  std::unique_ptr<GreedyDecoder> decoder_;
};

std::vector<int32_t> RowOf(const std::vector<int32_t>& values, int64_t row, int64_t length) {
  return {values.begin() + row * length, values.begin() + (row + 1) * length};
}

// Shows validation examples: corrupted input, target, and what the model says.
void ShowSamples(const LoadedModel& loaded, Filler& filler, int64_t count) {
  const ValidationData data = OpenValidationData(loaded);
  for (int64_t i = 0; i < std::min(count, data.example_count()); ++i) {
    const Batch batch = data.Get(i, 1, 0, 1);
    std::vector<int32_t> input = RowOf(batch.encoder_ids, 0, batch.input_length);
    input.erase(std::find(input.begin(), input.end(), filler.tokenizer().eos_id()), input.end());
    std::cout << "input:  " << filler.tokenizer().Decode(input)
              << "\ntarget: " << filler.tokenizer().Decode(batch.targets)
              << "\noutput: " << filler.Fill(input) << "\n\n";
  }
}

}  // namespace

Action SetUpGenerate(CLI::App& app) {
  const auto options = AddCheckpointOptions(app);
  const auto samples = std::make_shared<int64_t>(0);
  app.add_option(
         "--samples", *samples,
         "Show this many validation examples with the model's output instead of reading lines")
      ->check(CLI::NonNegativeNumber);
  return [options, samples] {
    LoadedModel loaded = options->Load(*samples > 0 ? kForEvaluation : kForGeneration);
    Filler filler(loaded);
    if (*samples > 0) {
      ShowSamples(loaded, filler, *samples);
      return ExitCode::kDone;
    }
    std::string line;
    for (int64_t number = 1; std::getline(std::cin, line); ++number) {
      const ErrorContext context(
          [&] { return fmt::format("reading line {} of the input", number); });
      std::cout << filler.Fill(filler.tokenizer().EncodeWithSentinels(line)) << std::endl;
    }
    return ExitCode::kDone;
  };
}

}  // namespace syntra
