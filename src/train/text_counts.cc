// SPDX-License-Identifier: Apache-2.0
#include "train/text_counts.h"

#include <algorithm>
#include <span>
#include <vector>

#include "metrics/unicode_text.h"

namespace syntra {
namespace {

// SentencePiece's text for what a tokenizer has no piece for. The spaces around it are not those of
// the text.
constexpr const char* kUnknown = " \u2047 ";
constexpr const char* kUnknownCharacter = "\u2047";

TextCounts CountsOf(const std::string& decoded) {
  const std::string text = Replaced(decoded, kUnknown, kUnknownCharacter);
  return {.words = std::ssize(SplitAtSpace(text)), .bytes = std::ssize(text)};
}

// The token before a row's first target, or 0 if there is none. If the row itself has none, it is
// the last token of the row before, `last`: rows are cut from the documents one after another.
int32_t TokenBefore(const Batch& batch, int64_t row, int32_t last) {
  const std::span<const int32_t> targets = batch.Row("targets", row);
  const auto first = std::ranges::find_if(targets, [](int32_t id) { return id > 0; });
  if (first == targets.end()) return last;
  const int32_t before = batch.Row("decoder_ids", row)[first - targets.begin()];
  return before > 0 ? before : last;
}

int32_t LastTarget(const Batch& batch, int64_t row) {
  int32_t last = 0;
  for (const int32_t id : batch.Row("targets", row)) last = id > 0 ? id : last;
  return last;
}

// Adds what a row's targets add to the text that ends with the token `before`. So a word that two
// rows share is counted once, where it begins, and so is the space between two rows. Texts end with
// an EOS.
void CountText(int32_t before, std::span<const int32_t> targets, const Tokenizer& tokenizer,
               TextCounts* counts) {
  std::vector<int32_t> ids;
  TextCounts counted;  // of ids, already
  if (before > 0 && before != tokenizer.eos_id()) {
    ids.push_back(before);
    counted = CountsOf(tokenizer.Decode(ids));
  }
  const auto count = [&] {
    const TextCounts all = CountsOf(tokenizer.Decode(ids));
    counts->words += all.words - counted.words;
    counts->bytes += all.bytes - counted.bytes;
    ids.clear();
    counted = {};
  };
  for (const int32_t id : targets) {
    if (id <= 0) continue;
    if (id != tokenizer.eos_id()) {
      ids.push_back(id);
      continue;
    }
    count();
    ++counts->words;
  }
  count();
}

}  // namespace

void CountTexts(const Batch& batch, const ValidationData& data, const Tokenizer& tokenizer,
                TextCounts* counts) {
  int32_t last =
      batch.first_example > 0 ? LastTarget(data.Examples(batch.first_example - 1, 1), 0) : 0;
  for (int64_t row = 0; row < batch.rows; ++row) {
    CountText(TokenBefore(batch, row, last), batch.Row("targets", row), tokenizer, counts);
    last = LastTarget(batch, row);
  }
}

}  // namespace syntra
