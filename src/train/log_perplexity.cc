// SPDX-License-Identifier: Apache-2.0
#include "train/log_perplexity.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "base/divide.h"
#include "core/busy_cores.h"
#include "metrics/unicode_text.h"
#include "plan/evaluation_rows.h"

namespace syntra {
namespace {

// The checksum, a 64-bit sum, as three exact doubles: every part stays below 2^53 after adding over
// the ranks.
constexpr int kParts = 3;
constexpr int kPartBits = 22;

// Sums of a piece are rounded to a multiple of this (in nats): doubles then add them exactly up to
// 2^33, so that the order, which follows the number of ranks, does not matter.
constexpr double kGrain = 0x1p-20;

// How many batches of the split are read.
int64_t BatchesOf(const EvaluationConfig& how, int64_t in_split) {
  return how.batches() > 0 ? std::min<int64_t>(how.batches(), in_split) : in_split;
}

// What is summed over the pieces of all ranks: slots of a vector, since all travel in one
// collective.
enum SumSlot : size_t {
  kNegativeLogP,
  kTokens,
  kWords,
  kBytes,
  kChecksum,
  kSumSlots = kChecksum + kParts
};

// The words and bytes of targets as text, by which models with different tokenizers are compared.
struct TextCounts {
  int64_t words = 0;  // that begin in the targets; the end of a text counts as one
  int64_t bytes = 0;  // of UTF-8; three for characters in a row for which there is no piece
};

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

// CountText of all rows of `batch`, a part of `data`.
void CountTexts(const Batch& batch, const ValidationData& data, const Tokenizer& tokenizer,
                TextCounts* counts) {
  int32_t last =
      batch.first_example > 0 ? LastTarget(data.Examples(batch.first_example - 1, 1), 0) : 0;
  for (int64_t row = 0; row < batch.rows; ++row) {
    CountText(TokenBefore(batch, row, last), batch.Row("targets", row), tokenizer, counts);
    last = LastTarget(batch, row);
  }
}

}  // namespace

double LogPerplexity::PerplexityPerWord() const {
  return std::exp(value * static_cast<double>(tokens) / static_cast<double>(words));
}

double LogPerplexity::BitsPerByte() const {
  return value * static_cast<double>(tokens) / static_cast<double>(bytes) / std::log(2.0);
}

std::optional<LogPerplexity> MeasureLogPerplexity(EvaluationReplica& replica,
                                                  const ValidationData& data, Communicator& ranks,
                                                  const Config& config,
                                                  const std::function<bool()>& stop,
                                                  const Tokenizer* counts_text) {
  if (data.example_count() == 0) Fail(ExitCode::kData, "the validation split has no examples");
  const int64_t batch_size = std::min(EvaluationBatchRows(config), data.example_count());
  const int64_t in_split = data.BatchCount(batch_size);
  const int64_t count = BatchesOf(config.evaluation(), in_split);
  const int64_t pieces = DivideUp(batch_size, kPieceRows);
  std::array<double, kSumSlots> sums{};
  uint64_t checksum = 0;
  TextCounts counts;
  // The pieces go round the ranks.
  for (int64_t round = 0; round < count * pieces; round += ranks.size()) {
    if (stop && stop()) return std::nullopt;
    const int64_t i = round + ranks.rank();
    if (i >= count * pieces) break;
    const int64_t row = i % pieces * kPieceRows;
    const Batch batch =
        data.Get(i / pieces, batch_size, row, std::min(kPieceRows, batch_size - row));
    const LossSums piece = replica.Evaluate(batch);
    sums[kNegativeLogP] += std::nearbyint(piece.negative_log_p / kGrain) * kGrain;
    sums[kTokens] += piece.tokens;
    checksum += LabelChecksum(batch);
    if (counts_text) CountTexts(batch, data, *counts_text, &counts);
    LookWhetherCoresAreBusy();
  }
  sums[kWords] = static_cast<double>(counts.words);
  sums[kBytes] = static_cast<double>(counts.bytes);
  for (int part = 0; part < kParts; ++part) {
    sums[kChecksum + part] =
        static_cast<double>(checksum >> (part * kPartBits) & ((uint64_t{1} << kPartBits) - 1));
  }
  ranks.AllReduceSum(sums);
  checksum = 0;
  for (int part = 0; part < kParts; ++part) {
    checksum += static_cast<uint64_t>(sums[kChecksum + part]) << (part * kPartBits);
  }
  return LogPerplexity{.value = sums[kNegativeLogP] / sums[kTokens],
                       .tokens = static_cast<int64_t>(sums[kTokens]),
                       .examples = count * batch_size,
                       .batches = count,
                       .left_out_examples = data.example_count() - count * batch_size,
                       .left_out_batches = in_split - count,
                       .label_checksum = checksum,
                       .words = static_cast<int64_t>(sums[kWords]),
                       .bytes = static_cast<int64_t>(sums[kBytes])};
}

}  // namespace syntra
