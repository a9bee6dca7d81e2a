// SPDX-License-Identifier: Apache-2.0
// syntra score: log-probabilities of given targets; a line in, a line out. Ranks share the lines.
#include <CLI/CLI.hpp>

#include "base/text.h"
#include "cli/checkpoint_options.h"
#include "cli/commands.h"
#include "cli/gaps.h"
#include "cli/line_answers.h"
#include "cli/ranks.h"
#include "decode/scorer.h"

namespace syntra {
namespace {

// Turns lines into requests.
class RequestReader {
 public:
  // With `goes_on` the targets stand after the input, and neither ends with an EOS.
  RequestReader(const Tokenizer& tokenizer, const DecodeSettings& lengths, bool goes_on,
                LineAnswers& answers)
      : tokenizer_(tokenizer), lengths_(lengths), goes_on_(goes_on), answers_(answers) {}

  // nullopt, with a report, if line `index` of a block is bad.
  std::optional<ScoreRequest> Read(size_t index, const std::string& line) const {
    const auto bad = [&](const std::string& what) {
      answers_.Report(index, what);
      return std::nullopt;
    };
    const std::vector<std::string> parts = Split(line, '\t');
    if (parts.size() < 2) return bad("has no tab; write the input, a tab, and the target");
    const auto ask = goes_on_ ? RequestToGoOn : RequestFor;
    ScoreRequest request{ask(tokenizer_, parts[0]).ids, {}};
    const int64_t inputs = std::ssize(request.ids);
    if (inputs > lengths_.input_length) {
      return bad(TooLongInput(inputs, lengths_));
    }
    const int64_t room =
        lengths_.together > 0 ? lengths_.together - inputs : lengths_.output_length;
    for (const std::string& target : std::span(parts).subspan(1)) {
      request.targets.push_back(ask(tokenizer_, target).ids);
      const int64_t length = std::ssize(request.targets.back());
      if (length == 0) return bad("has an empty target; write some text after each tab");
      if (length <= room) continue;
      return bad(fmt::format(
          "has a target of {} tokens, but the model has room for {} (its {})", length, room,
          lengths_.together > 0 ? "data.input_length, without the input"
                                : "data.target_length or, where that is 0, data.input_length"));
    }
    return request;
  }

 private:
  const Tokenizer& tokenizer_;
  const DecodeSettings& lengths_;
  const bool goes_on_;
  LineAnswers& answers_;
};

// The log-probability of each target, tabs between them.
std::string Numbers(const std::vector<double>& scores) {
  std::vector<std::string> numbers;
  numbers.reserve(scores.size());
  for (const double score : scores) numbers.push_back(fmt::format("{:.6f}", score));
  return Join(numbers, "\t");
}

ExitCode Score(const CheckpointOptions& checkpoint, Communicator& ranks, Watchdog& watchdog) {
  LoadedModel loaded = checkpoint.LoadOnRanks(kForGeneration, ranks, watchdog);
  CheckWritesText(loaded.config.model());
  CheckHasEos(*loaded.tokenizer);
  const DecodeSettings lengths = DecodeSettingsOf(loaded.config);
  LineAnswers answers(ranks, watchdog);
  Scorer scorer(loaded.replica->trained(), lengths);
  const RequestReader reader(*loaded.tokenizer, lengths, IsLanguageModelling(loaded.config.data()),
                             answers);
  answers.Run([&](const std::vector<std::string>& lines) {
    std::vector<ScoreRequest> requests;
    std::vector<size_t> asked;  // the line of each request
    for (size_t i = 0; i < lines.size(); ++i) {
      std::optional<ScoreRequest> request = reader.Read(i, lines[i]);
      if (!request) continue;
      requests.push_back(std::move(*request));
      asked.push_back(i);
    }
    const std::vector<std::vector<double>> scores =
        scorer.Score(requests, ranks, [&](size_t done) { answers.Advance(done); });
    std::vector<std::string> printed(lines.size());
    for (size_t i = 0; i < asked.size(); ++i) printed[asked[i]] = Numbers(scores[i]);
    return printed;
  });
  return answers.code();
}

}  // namespace

Action SetUpScore(CLI::App& app) {
  const auto checkpoint = AddCheckpointOptions(app);
  return [checkpoint] {
    return WithRanks("score", [&](Communicator& ranks, Watchdog& watchdog) {
      return Score(*checkpoint, ranks, watchdog);
    });
  };
}

}  // namespace syntra
