// SPDX-License-Identifier: Apache-2.0
// WNLI in the form of WSC, for a model that learns that: which words of the second sentence stand
// where the first has a pronoun? T5 evaluates WNLI in this way (glue_wnli_v002_simple_eval,
// wnli_simple in t5/data/preprocessors.py) and trains on WSC and DPR instead.
#include <algorithm>
#include <array>
#include <set>

#include "base/text.h"
#include "metrics/unicode_text.h"
#include "tasks/label_task.h"
#include "tasks/referent_task.h"

namespace syntra {
namespace {

using Words = std::vector<std::string>;

const std::set<std::string, std::less<>> kPronouns = {"he",  "she",   "they", "it", "her",
                                                      "his", "their", "them", "him"};
constexpr std::array<std::string_view, 3> kArticles = {"a", "an", "the"};

bool EndsInPunctuation(std::string_view text) {
  return !text.empty() && std::string_view(".,!?").find(text.back()) != std::string_view::npos;
}

// Lower-case words without a mark after them.
Words CleanWords(std::string_view sentence) {
  Words words = Split(LowerCase(StripUnicodeSpace(sentence)), ' ');
  for (std::string& word : words) {
    if (EndsInPunctuation(word)) word.pop_back();
  }
  std::erase(words, "");
  return words;
}

std::string Joined(std::span<const std::string> words) { return Join(words, " "); }

Words Reversed(std::span<const std::string> words) { return {words.rbegin(), words.rend()}; }

// How many of `words`, from the first on, stand in `sentence` one after the other; of the first
// and last also a part of a word counts, as in T5.
size_t PrefixIn(const Words& sentence, std::span<const std::string> words) {
  const std::string text = Joined(sentence);
  size_t count = 0;
  while (count < words.size() && text.find(Joined(words.first(count + 1))) != std::string::npos) {
    ++count;
  }
  return count;
}

// The part of `text` between `before` and `after`, as "before (.+) after" finds it: after the first
// `before`, up to the last `after`. Either may be empty: all there is on that side.
std::string Between(const std::string& text, const std::string& before, const std::string& after) {
  const std::string opening = before.empty() ? "" : before + " ";
  const std::string closing = after.empty() ? "" : " " + after;
  for (size_t at = text.find(opening); at != std::string::npos;
       at = before.empty() ? std::string::npos : text.find(opening, at + 1)) {
    const size_t begin = at + opening.size();
    const size_t end = after.empty() ? text.size() : text.rfind(closing);
    if (end != std::string::npos && end > begin) return text.substr(begin, end - begin);
  }
  return "";
}

// The words that a hypothesis has in place of a pronoun of the premise.
struct Match {
  size_t score = 0;  // words around the pronoun that the hypothesis repeats
  size_t pronoun = 0;
  std::string candidate;
};

Match MatchOf(std::span<const std::string> premise, const Words& hypothesis, size_t pronoun) {
  const auto before = premise.first(pronoun), after = premise.subspan(pronoun + 1);
  const size_t left = PrefixIn(Reversed(hypothesis), Reversed(before));
  const size_t right = PrefixIn(hypothesis, after);
  Match match{.score = left + right, .pronoun = pronoun, .candidate = ""};
  if (match.score == 0) return match;
  const std::string text = Joined(hypothesis);
  const std::string opening = Joined(before.last(left)), closing = Joined(after.first(right));
  match.candidate = Between(text, opening, closing);
  if (match.candidate.empty()) match.candidate = Between(text, "", closing);
  if (match.candidate.empty()) match.candidate = Between(text, opening, "");
  return match;
}

// The first of equal matches.
Match BestMatch(const Words& premise, const Words& hypothesis) {
  std::optional<Match> best;
  for (size_t i = 0; i < premise.size(); ++i) {
    if (!kPronouns.contains(premise[i])) continue;
    Match match = MatchOf(premise, hypothesis, i);
    if (!best || match.score > best->score) best = std::move(match);
  }
  if (!best) throw BadRow{"sentence1 has no pronoun"};
  return *best;
}

// From the last of the first places of the articles on: what is before them does not belong to it.
Words WithoutBeginning(const std::string& candidate) {
  Words words = Split(candidate, ' ');
  int64_t begin = 0;
  for (const std::string_view article : kArticles) {
    const auto found = std::ranges::find(words, article);
    if (found != words.end()) begin = std::max(begin, found - words.begin());
  }
  words.erase(words.begin(), words.begin() + begin);
  return words;
}

// Where `words`, each with a mark after it or none, end if they begin at `at`; npos if they do
// not.
size_t EndOf(std::string_view text, size_t at, const Words& words) {
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string wanted = (i > 0 ? " " : "") + words[i];
    if (!text.substr(at).starts_with(wanted)) return std::string_view::npos;
    at += wanted.size();
    if (at < text.size() && EndsInPunctuation(text.substr(at, 1))) ++at;
  }
  return at;
}

// The candidate as the hypothesis writes it, without a mark after it or an "'s".
std::string AsWritten(const std::string& candidate, const std::string& hypothesis) {
  const Words words = WithoutBeginning(candidate);
  const std::string lower = LowerCase(hypothesis);
  size_t begin = 0, end = std::string::npos;
  // Places in both are the same; not where a letter has fewer bytes in one of them.
  while (lower.size() == hypothesis.size() && begin <= lower.size()) {
    end = EndOf(lower, begin, words);
    if (end != std::string::npos) break;
    ++begin;
  }
  if (end == std::string::npos) throw BadRow{"sentence2 names nothing for the pronoun"};
  std::string text = hypothesis.substr(begin, end - begin);
  if (EndsInPunctuation(text)) text.pop_back();
  for (const std::string_view possessive : {"'s", "'"}) {
    if (text.ends_with(possessive)) return text.substr(0, text.size() - possessive.size());
  }
  return text;
}

// "wsc: " and the sentence, with stars around a word and without the mark after it.
std::string Highlighted(const std::string& sentence, size_t index) {
  Words words = Split(sentence, ' ');
  if (words[index].empty()) throw BadRow{"sentence1 has two spaces before its pronoun"};
  const std::string& word = words[index];
  words[index] = EndsInPunctuation(word)
                     ? fmt::format("*{}* {}", word.substr(0, word.size() - 1), word.back())
                     : fmt::format("*{}*", word);
  return "wsc: " + Joined(words);
}

class WnliAsWsc : public ReferentTask {
 public:
  WnliAsWsc()
      : ReferentTask({.name = "wnli",
                      .benchmark = "glue",
                      .splits = Splits(),
                      .labels = {},
                      .metrics = {"accuracy"},
                      .is_averaged = false}) {}

  int64_t Read(const TaskSplit& split, std::span<const Path> files, const BadRecordPolicy& policy,
               const Sink& sink) const override {
    const bool is_test = split.use == TaskSplit::Use::kTest;
    return ReadRows(
        {files[0], kTsv, {{"sentence1"}, {"sentence2"}, {"label", is_test}, {"index", true}}},
        policy, [&](const Row& row) { return Parse(row, split.use); }, sink);
  }

 protected:
  Json Submitted(const Prediction& prediction) const override {
    return NamesTarget(prediction) ? 1 : 0;
  }

 private:
  static std::vector<TaskSplit> Splits() {
    std::vector<TaskSplit> splits = GlueSplits("WNLI");
    std::erase_if(splits, [](const auto& split) { return split.use == TaskSplit::Use::kTrain; });
    return splits;
  }

  static std::vector<TaskExample> Parse(const Row& row, TaskSplit::Use use) {
    const std::string &premise = *row.fields[0], &hypothesis = *row.fields[1];
    const std::string values[] = {"0", "1"};
    const std::optional<std::string> label = LabelOf(row.fields[2], use);
    const Match match = BestMatch(CleanWords(premise), CleanWords(hypothesis));
    TaskExample example;
    example.inputs = Highlighted(premise, match.pronoun);
    example.targets = AsWritten(match.candidate, hypothesis);
    example.accepted_texts = {example.targets};
    if (label) example.expected = IndexOf(*label, values, "label");
    example.id = IdOf(row.fields[3], row);
    return {std::move(example)};
  }
};

}  // namespace

std::unique_ptr<Task> task_wnli_as_wsc(const TaskConfig& /*config*/) {
  return std::make_unique<WnliAsWsc>();
}

}  // namespace syntra
