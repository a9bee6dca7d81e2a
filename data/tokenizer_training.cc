// SPDX-License-Identifier: Apache-2.0
// The text is read as a whole before the library gets it line by line, so that no exception of ours
// passes through the library.
#include "data/tokenizer_training.h"

#include <fmt/format.h>
#include <sentencepiece_trainer.h>

#include <unordered_map>

#include "base/crash_guard.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "base/utf8.h"
#include "data/pattern.h"
#include "data/record_reader.h"
#include "data/sentence_piece.h"

namespace syntra {
namespace {

// The trainer skips longer lines without an error.
constexpr size_t kMaxLineBytes = 4096;
// The trainer adds up partial sums of its threads, whose number must not depend on the machine.
constexpr int kThreads = 16;

// The bytes of `rest`, a text without its first lines, that the trainer gets as the next line: up
// to a newline. A long line ends at a space or, without one, between two characters.
size_t LengthOfLine(std::string_view rest) {
  const size_t newline = std::min(rest.find('\n'), rest.size());
  if (newline <= kMaxLineBytes) return newline;
  const size_t space = rest.rfind(' ', kMaxLineBytes);
  if (space != std::string_view::npos && space > 0) return space;
  size_t length = kMaxLineBytes;
  while (ContinuesCharacter(rest[length])) --length;
  return length;
}

class Lines : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(std::string_view text) : rest_(text) { Next(); }

  bool done() const override { return done_; }
  void Next() override {
    done_ = rest_.empty();
    const size_t length = LengthOfLine(rest_);
    line_ = rest_.substr(0, length);
    rest_.remove_prefix(length);
    if (rest_.starts_with('\n')) rest_.remove_prefix(1);
  }
  const std::string& value() const override { return line_; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  std::string_view rest_;
  std::string line_;
  bool done_ = false;
};

// Adds the documents of one file until the text has `most` bytes.
void AddDocuments(const Path& path, const TokenizerCorpus& corpus, int64_t most,
                  TokenizerText* text) {
  const std::unique_ptr<RecordReader> reader = OpenRecordReader(path, corpus.text_field);
  BadRecordLedger ledger(path, corpus.on_bad_record);
  for (Record record; std::ssize(text->lines) < most;) {
    if (!NextGood(reader.get(), &ledger, &record)) return ledger.Finish();
    text->Add(record.text);
  }
  // Finish would judge the share of bad records, which is not known of a file that is cut here.
}

// A message of the library that advises an option, with the name that ours has.
std::string WithOurOption(std::string message) {
  constexpr std::string_view kTheirs = "--character_coverage", kOurs = "--coverage";
  const size_t at = message.find(kTheirs);
  if (at != std::string::npos) message.replace(at, kTheirs.size(), kOurs);
  return message;
}

}  // namespace

void TokenizerText::Add(std::string_view document) {
  lines.append(document).push_back('\n');
  ++documents;
}

TokenizerText ReadTokenizerText(const TokenizerCorpus& corpus) {
  TokenizerText text{.source = Join(corpus.patterns, ", ")};
  const std::vector<Path> files = ExpandPatterns(corpus.patterns);
  for (size_t i = 0; i < files.size(); ++i) {
    const auto part = static_cast<double>(i + 1) / static_cast<double>(files.size());
    const double most = part * static_cast<double>(corpus.most_bytes);
    AddDocuments(files[i], corpus, static_cast<int64_t>(most), &text);
  }
  return text;
}

std::string TrainTokenizer(const TokenizerTraining& training, const TokenizerText& text) {
  if (text.lines.find_first_not_of(" \n\t\r") == std::string::npos) {
    Fail(ExitCode::kData, "there is no text in {} to train a tokenizer on", text.source);
  }
  const std::unordered_map<std::string, std::string> settings = {
      {"model_type", training.kind},
      {"vocab_size", std::to_string(training.pieces)},
      {"normalization_rule_name", training.normalization},
      {"character_coverage", fmt::format("{}", training.character_coverage)},
      {"byte_fallback", training.byte_fallback ? "true" : "false"},
      {"pad_id", "0"},
      {"eos_id", "1"},
      {"unk_id", "2"},
      {"bos_id", "-1"},
      {"max_sentence_length", std::to_string(kMaxLineBytes)},
      {"num_threads", std::to_string(kThreads)},
      {"minloglevel", "1"}};
  Log().info("training a tokenizer of {} pieces on {} of text, {}", training.pieces,
             HumanBytes(static_cast<double>(text.lines.size())),
             Counted(text.documents, "document"));
  Lines lines(text.lines);
  std::string model;
  const ShortageGuard guard("SentencePiece");
  const auto status = sentencepiece::SentencePieceTrainer::Train(settings, &lines, &model);
  if (!status.ok()) {
    Fail(ExitCode::kConfig, "cannot train a tokenizer of {} pieces on {}: {}", training.pieces,
         Counted(text.documents, "document"), WithOurOption(ReasonOfStatus(status.message())));
  }
  return model;
}

}  // namespace syntra
