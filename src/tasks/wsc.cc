// SPDX-License-Identifier: Apache-2.0
// WSC, the Winograd schema challenge: what does the marked pronoun refer to? The model names the
// referent; it is trained on those that are right, and on Definite Pronoun Resolution (DPR).
#include <algorithm>

#include "base/text.h"
#include "data/line_reader.h"
#include "metrics/unicode_text.h"
#include "tasks/label_task.h"
#include "tasks/referent_task.h"

namespace syntra {
namespace {

constexpr const char* kDpr = "DPR/train.c.txt";

std::vector<TaskSplit> WscSplits(bool use_dpr) {
  std::vector<TaskSplit> splits = SuperGlueSplits("WSC");
  if (use_dpr) splits[0].extras = {kDpr};
  return splits;
}

bool IsLowerAscii(char c) { return c >= 'a' && c <= 'z'; }

// With a first letter of the same case as that of `word`.
std::string WithCaseOf(std::string_view word, std::string_view text) {
  const std::string_view first = Characters(text).front().bytes;
  const bool is_lower = IsLowerCase(Characters(word).front().code);
  return (is_lower ? LowerCase(first) : UpperCase(first)).append(text.substr(first.size()));
}

// The referent as it stands in the text, as far as that can be said: TensorFlow Datasets'
// "wsc.fixed" mends its case, end and newlines.
std::string MendReferent(std::string referent, const std::string& text, int64_t index) {
  if (text.find(referent) != std::string::npos) return referent;
  const std::vector<std::string_view> words = SplitAtSpace(text);
  if (referent.empty() || index < 0 || index >= static_cast<int64_t>(words.size())) {
    return referent;
  }
  std::string mended = WithCaseOf(words[index], referent);
  mended.erase(mended.find_last_not_of('.') + 1);
  std::ranges::replace(mended, '\n', ' ');
  return text.find(mended) == std::string::npos ? referent : mended;
}

// The number of the word that is the pronoun, which the file gives wrong for one text.
size_t FindPronoun(const std::vector<std::string>& words, const std::string& pronoun,
                   int64_t index) {
  const auto count = static_cast<int64_t>(words.size());
  const auto is_pronoun = [&](int64_t i) {
    if (i < 0 || i >= count) return false;
    if (words[i] == pronoun) return true;
    // Punctuation may stick to it.
    return words[i].starts_with(pronoun) && !IsLowerAscii(words[i][pronoun.size()] | 0x20);
  };
  const bool is_index = !pronoun.empty() && index >= 0 && index < count;
  for (const int64_t step : {0, 1, -1}) {
    if (is_index && is_pronoun(index + step)) return static_cast<size_t>(index + step);
  }
  throw BadRow{fmt::format("word {} of the text is not \"{}\"", index, Printable(pronoun, 40))};
}

// "wsc: " and the text, the pronoun between stars.
std::string MarkPronoun(const std::string& text, const std::string& pronoun, int64_t index) {
  std::vector<std::string> words = Split(text, ' ');
  const size_t at = FindPronoun(words, pronoun, index);
  const std::string behind = words[at].substr(pronoun.size());
  words[at] = "*" + pronoun + "*";
  // T5 separates punctuation from the pronoun, and drops the space at the text's end.
  if (!behind.empty()) {
    words[at] += " " + behind;
    while (words.back().empty()) words.pop_back();
  }
  if (at + 1 == words.size()) words.emplace_back();
  return "wsc: " + Join(words, " ");
}

class Wsc : public ReferentTask {
 public:
  explicit Wsc(bool use_dpr)
      : ReferentTask({.name = "wsc",
                      .benchmark = "superglue",
                      .splits = WscSplits(use_dpr),
                      .labels = {},
                      .metrics = {"accuracy"}}) {}

  int64_t Read(const TaskSplit& split, std::span<const Path> files, const BadRecordPolicy& policy,
               const Sink& sink) const override {
    const bool is_test = split.use == TaskSplit::Use::kTest;
    const std::vector<TableField> fields = {{"text"},
                                            {"target.span1_text"},
                                            {"target.span1_index"},
                                            {"target.span2_text"},
                                            {"target.span2_index"},
                                            {"label", is_test},
                                            {"idx", true}};
    int64_t bad = ReadRows(
        {files[0], kJsonLines, fields}, policy,
        [&](const Row& row) { return Parse(row, split.use); }, sink);
    if (files.size() > 1) bad += ReadDpr(files[1], policy, sink);
    return bad;
  }

 protected:
  Json Submitted(const Prediction& prediction) const override {
    return NamesTarget(prediction) ? "True" : "False";
  }

 private:
  static int64_t Index(const std::string& text) {
    int64_t index = 0;
    if (!ParseInt64(text, &index)) {
      throw BadRow{fmt::format("the number of a word is \"{}\"", Printable(text, 40))};
    }
    return index;
  }

  static std::vector<TaskExample> Parse(const Row& row, TaskSplit::Use use) {
    const std::string& text = *row.fields[0];
    const std::string values[] = {"false", "true"};
    const std::optional<std::string> label = LabelOf(row.fields[5], use);
    TaskExample example;
    example.inputs = MarkPronoun(text, *row.fields[3], Index(*row.fields[4]));
    example.targets = MendReferent(*row.fields[1], text, Index(*row.fields[2]));
    example.accepted_texts = {example.targets};
    if (label) example.expected = IndexOf(*label, values, "label");
    example.id = IdOf(row.fields[6], row);
    if (use == TaskSplit::Use::kTrain && example.expected != 1) return {};
    return {std::move(example)};
  }

  // Records of five lines: sentence, pronoun, two candidates with a comma between, the right one,
  // nothing.
  static int64_t ReadDpr(const Path& file, const BadRecordPolicy& policy, const Sink& sink) {
    LineReader lines(OpenByteSource(file));
    BadRecordLedger ledger(file, policy);
    int64_t count = 0;
    for (Line line; lines.Next(&line); ++count) {
      Record record{.offset = line.offset, .line = line.number};
      std::vector<std::string> parts;
      do {
        parts.emplace_back(StripSpace(line.text));
      } while (!parts.back().empty() && lines.Next(&line));
      if (parts.back().empty()) parts.pop_back();
      if (parts.empty()) continue;
      try {
        TaskExample example = ParseDpr(parts);
        example.id = fmt::format("dpr/{}", count);
        sink(std::move(example));
        ledger.CountGood();
      } catch (const BadRow& bad) {
        record.fault = RecordFault::kBadValue;
        record.detail = bad.detail;
        ledger.CountBad(record);
      }
    }
    ledger.Finish();
    return ledger.bad();
  }

  static TaskExample ParseDpr(const std::vector<std::string>& lines) {
    if (lines.size() != 4) {
      throw BadRow{fmt::format("{} lines; must be sentence, pronoun, candidates and the right one",
                               lines.size())};
    }
    for (const std::string& line : lines) {
      if (CheckText(line) != RecordFault::kNone) {
        throw BadRow{std::string(ReasonOf(CheckText(line)))};
      }
    }
    const size_t comma = lines[2].find(',');
    const std::string_view candidates = lines[2];
    const bool is_known =
        comma != std::string::npos && (StripSpace(candidates.substr(0, comma)) == lines[3] ||
                                       StripSpace(candidates.substr(comma + 1)) == lines[3]);
    if (!is_known) throw BadRow{"the answer is not one of the two candidates"};
    TaskExample example;
    example.inputs = "wsc: " + MarkFirst(lines[0], lines[1]);
    example.targets = lines[3];
    example.accepted_texts = {lines[3]};
    example.expected = 1;
    return example;
  }

  // The first place of the pronoun between a space and a space, a full stop or a comma.
  static std::string MarkFirst(std::string sentence, const std::string& pronoun) {
    const std::string wanted = " " + pronoun;
    for (size_t at = sentence.find(wanted); at != std::string::npos;
         at = sentence.find(wanted, at + 1)) {
      const size_t end = at + wanted.size();
      if (end == sentence.size() ||
          std::string_view(" .,").find(sentence[end]) == std::string::npos) {
        continue;
      }
      return sentence.replace(at, wanted.size(), " *" + pronoun + "*");
    }
    return sentence;
  }
};

}  // namespace

std::unique_ptr<Task> task_wsc(const TaskConfig& config) {
  return std::make_unique<Wsc>(config.wsc().use_dpr());
}

}  // namespace syntra
