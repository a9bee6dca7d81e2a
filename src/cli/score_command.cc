// SPDX-License-Identifier: Apache-2.0
// syntra score: log-probabilities of given targets; a line in, a line out.
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "base/output.h"
#include "base/text.h"
#include "cli/arriving_lines.h"
#include "cli/checkpoint_options.h"
#include "cli/commands.h"
#include "cli/gaps.h"
#include "decode/scorer.h"

namespace syntra {
namespace {

class LineScorer {
 public:
  LineScorer(Scorer& scorer, const Tokenizer& tokenizer, const ExampleLengths& lengths)
      : scorer_(scorer), tokenizer_(tokenizer), lengths_(lengths) {}

  // A line for each: the log-probability of each target, tabs between them. A bad line is reported
  // and becomes an empty one.
  std::vector<std::string> Score(const std::vector<std::string>& lines) {
    std::vector<ScoreRequest> requests;
    std::vector<size_t> asked;  // the line of each request
    for (size_t i = 0; i < lines.size(); ++i) {
      ++number_;
      const std::vector<std::string> parts = Split(lines[i], '\t');
      ScoreRequest request;
      if (!Read(parts, &request)) continue;
      requests.push_back(std::move(request));
      asked.push_back(i);
    }
    const std::vector<std::vector<double>> scores = scorer_.Score(requests);
    std::vector<std::string> answers(lines.size());
    for (size_t i = 0; i < asked.size(); ++i) {
      std::vector<std::string> numbers;
      for (const double score : scores[i]) numbers.push_back(fmt::format("{:.6f}", score));
      answers[asked[i]] = Join(numbers, "\t");
    }
    return answers;
  }

  ExitCode code() const { return bad_lines_ > 0 ? ExitCode::kData : ExitCode::kDone; }

 private:
  // False, with a report, if the line is bad.
  bool Read(const std::vector<std::string>& parts, ScoreRequest* request) {
    if (parts.size() < 2) {
      return Report("has no tab; write the input, a tab, and the target");
    }
    request->ids = RequestFor(tokenizer_, parts[0]).ids;
    if (static_cast<int64_t>(request->ids.size()) > lengths_.inputs) {
      return Report(fmt::format("has {} tokens, but the model reads {} (its data.input_length)",
                                request->ids.size(), lengths_.inputs));
    }
    for (size_t i = 1; i < parts.size(); ++i) {
      request->targets.push_back(RequestFor(tokenizer_, parts[i]).ids);
      const size_t length = request->targets.back().size();
      if (static_cast<int64_t>(length) > lengths_.targets) {
        return Report(
            fmt::format("has a target of {} tokens, but the model writes {}, which "
                        "follow from its data.input_length",
                        length, lengths_.targets));
      }
    }
    return true;
  }

  bool Report(const std::string& what) {
    ++bad_lines_;
    PrintError(
        fmt::format("line {} of the input {}; an empty line takes its place", number_, what));
    return false;
  }

  Scorer& scorer_;
  const Tokenizer& tokenizer_;
  const ExampleLengths& lengths_;
  int64_t number_ = 0, bad_lines_ = 0;
};

}  // namespace

Action SetUpScore(CLI::App& app) {
  const auto checkpoint = AddCheckpointOptions(app);
  return [checkpoint] {
    LoadedModel loaded = checkpoint->Load(kForGeneration);
    const Tokenizer& tokenizer = *loaded.tokenizer;
    CheckHasEos(tokenizer);
    const ExampleLengths lengths = RowLengths(loaded.config.data());
    Scorer scorer(loaded.replica->trained(), lengths.inputs, lengths.targets);
    LineScorer lines_scorer(scorer, tokenizer, lengths);
    ArrivingLines input(STDIN_FILENO);
    for (auto lines = input.Next(); !lines.empty(); lines = input.Next()) {
      for (const std::string& answer : lines_scorer.Score(lines)) fmt::print("{}\n", answer);
      FlushOutput();
    }
    return lines_scorer.code();
  };
}

}  // namespace syntra
