// SPDX-License-Identifier: Apache-2.0
#include "data/word_cache.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/thread.h"
#include "data/tokenizer_model.pb.h"

namespace syntra {
namespace {

using tokenizer::ModelFile;

// Largest number of words in a thread's cache, half of 8 MiB. A table of 64 MiB knows more words,
// but its memory costs more time than segmenting those words: to get it from the system, and to
// read it, since it does not fit into the caches of the processor.
constexpr size_t kMaxWords = size_t{1} << 16;
// The same for all threads together.
constexpr size_t kMaxWordsOfThreads = 12 * kMaxWords;
// New words that SentencePiece checks: the first kFirstChecked, then one of every kBetweenChecks.
constexpr uint64_t kFirstChecked = 1024, kBetweenChecks = 256;
// SentencePiece takes about 250 bytes of memory a byte, and some time.
constexpr size_t kMaxCheckedBytes = 4096;
constexpr size_t kMaxKeptBytes = size_t{1} << 20;  // a larger buffer for normal forms is freed
constexpr size_t kRoom = 256;                      // ids
constexpr size_t kMostUnsummed = 4096;  // ids; roundings of so many are far below the bound's slack

bool IsPrintableAscii(char c) { return c > 0x20 && c < 0x7f; }

uint64_t LoadEight(const char* bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

// The place of the first byte of at most 0x20 in a little-endian word; 8 if there is none.
int FirstLow(uint64_t word) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  // A borrow reaches only bytes after the first.
  return std::countr_zero((word - 0x21 * kOnes) & ~word & (0x80 * kOnes)) / 8;
}

uint64_t FirstBytes(uint64_t word, int count) {
  return count == 0 ? 0 : word & (~uint64_t{0} >> (64 - 8 * count));
}

// Whether the model has no rules or the built-in ones, none of which reaches across a space between
// ASCII words.
bool HasKnownRules(const tokenizer::NormalizerSettings& normalizer) {
  const std::string& name = normalizer.name();
  return normalizer.rules().empty() || name == "nmt_nfkc" || name == "nfkc" ||
         name == "nmt_nfkc_cf" || name == "nfkc_cf";
}

bool PartsWords(const ModelFile& model) {
  const auto& normalizer = model.normalizer();
  if (model.trainer().treat_whitespace_as_suffix() || !HasKnownRules(normalizer) ||
      !normalizer.add_dummy_prefix() || !normalizer.remove_extra_whitespaces() ||
      !normalizer.escape_whitespaces()) {
    return false;
  }
  bool has_space_mark = false;
  for (const auto& piece : model.pieces()) {
    if (piece.type() == ModelFile::USER_DEFINED) return false;
    if (piece.type() != ModelFile::NORMAL) continue;
    if (piece.piece().find(kSpaceMark, 1) != std::string::npos) return false;
    has_space_mark |= piece.piece() == kSpaceMark;
  }
  return has_space_mark;
}

}  // namespace

WordCache::WordCache(const sentencepiece::SentencePieceProcessor& processor, const ModelFile& model)
    : processor_(processor),
      normalizer_(std::make_shared<const Normalizer>(model)),
      segmenter_(std::make_shared<const PieceTable>(model)),
      parts_words_(PartsWords(model)) {
  if (!parts_words_) return;
  const auto normal = [&](const std::string& text) {
    normalizer_->Normalize(text, &normal_);
    return normal_;
  };
  for (const char space : {' ', '\t', '\n', '\r'}) {
    const std::string probe = {'a', space, 'b'};
    is_space_[static_cast<uint8_t>(space)] = normal(probe) == normal("a b");
  }
}

std::unique_ptr<WordCache> WordCache::MakeIfUnigram(
    const sentencepiece::SentencePieceProcessor& processor, const ModelFile& model) {
  if (model.trainer().model_type() != tokenizer::TrainerSettings::UNIGRAM) return nullptr;
  return std::unique_ptr<WordCache>(new WordCache(processor, model));
}

std::string_view WordCache::NextWord(std::string_view text, size_t* at) const {
  const size_t begin = *at;
  for (size_t i = begin; i < text.size(); ++i) {
    if (!is_space_[static_cast<uint8_t>(text[i])]) continue;
    size_t end = i + 1;
    while (end < text.size() && is_space_[static_cast<uint8_t>(text[end])]) ++end;
    // Next to other characters, a combining mark or a removed character could change the result.
    if (i > begin && end < text.size() && IsPrintableAscii(text[i - 1]) &&
        IsPrintableAscii(text[end])) {
      *at = end;
      return text.substr(begin, i - begin);
    }
    i = end - 1;
  }
  *at = text.size();
  return text.substr(begin);
}

WordKey WordCache::NextShortWord(std::string_view text, size_t* at) const {
  if (text.size() - *at < WordKey::kMostBytes + 2) return {};
  const char* begin = text.data() + *at;
  WordKey key{LoadEight(begin), 0};
  int bytes = FirstLow(key.low);
  if (bytes < 8) {
    key.low = FirstBytes(key.low, bytes);
  } else {
    const uint64_t rest = LoadEight(begin + 8);
    const int more = FirstLow(rest);
    key.high = FirstBytes(rest, more);
    bytes += more;
  }
  // The same rule as in NextWord.
  if (bytes == 0 || !is_space_[static_cast<uint8_t>(begin[bytes])] ||
      !IsPrintableAscii(begin[bytes - 1]) || !IsPrintableAscii(begin[bytes + 1])) {
    return {};
  }
  *at += bytes + 1;
  return key;
}

bool WordCache::Encode(std::string_view text, std::vector<int32_t>* ids) {
  id_count_ = summed_ = 0;
  sum_ = 0;
  magnitude_ = 0;
  for (size_t at = 0; at < text.size();) {
    if (!AppendShortWords(text, &at, ids)) return false;
    if (at == text.size()) break;
    const std::string_view word = NextWord(text, &at);
    if (!Append(word, parts_words_ ? WordKey::Of(word) : WordKey(), ids)) return false;
  }
  ids->resize(id_count_);
  return true;
}

bool WordCache::AppendShortWords(std::string_view text, size_t* at, std::vector<int32_t>* ids) {
  std::array<Ahead, 16> ahead;
  size_t found = 0, done = 0;
  for (bool more = true; more || done < found;) {
    while (more && found - done < ahead.size()) {
      const size_t begin = *at;
      const WordKey key = NextShortWord(text, at);
      more = !key.empty();
      if (!more) break;
      words_.Prefetch(key);
      ahead[found++ % ahead.size()] = {key, text.substr(begin, *at - 1 - begin)};
    }
    if (done == found) break;
    const Ahead& word = ahead[done++ % ahead.size()];
    if (!Append(word.text, word.key, ids)) return false;
  }
  return true;
}

bool WordCache::Append(std::string_view word, const WordKey& key, std::vector<int32_t>* ids) {
  const Word* cached = key.empty() ? nullptr : words_.Find(key);
  return (cached && AppendCached(*cached, ids)) || AppendNew(word, key, cached != nullptr, ids);
}

bool WordCache::AppendCached(const Word& word, std::vector<int32_t>* ids) {
  if (magnitude_ > word.largest_sum) return false;
  if (ids->size() < id_count_ + Word::kMostIds) ids->resize(id_count_ + kRoom);
  std::memcpy(ids->data() + id_count_, word.ids.data(), sizeof word.ids);
  id_count_ += word.id_count;
  magnitude_ += word.magnitude;
  if (id_count_ - summed_ > kMostUnsummed) FindSum(*ids);
  return true;
}

bool WordCache::AppendNew(std::string_view word, const WordKey& key, bool cached,
                          std::vector<int32_t>* ids) {
  normalizer_->Normalize(word, &normal_);
  if (!cached) {
    if (IsToBeChecked(word) && !AgreesWithSentencePiece(word)) return false;
    const Word* kept = key.empty() ? nullptr : Remember(key);
    if (kept && AppendCached(*kept, ids)) return true;
  }
  FindSum(*ids);
  ids->resize(id_count_);
  segmenter_.Segment(normal_, &sum_, ids);
  id_count_ = summed_ = ids->size();
  magnitude_ = std::abs(sum_);
  if (normal_.capacity() > kMaxKeptBytes) std::string().swap(normal_);
  return true;
}

void WordCache::FindSum(const std::vector<int32_t>& ids) {
  for (; summed_ < id_count_; ++summed_) {
    sum_ += static_cast<float>(segmenter_.pieces().score(ids[summed_]));
  }
  magnitude_ = std::abs(sum_);
}

// Each of the two sums has at most `characters` roundings and never exceeds `largest`, the sum
// before it and `characters` of the lowest scores, in magnitude. So its error is less than half of
// characters * largest / 2^22, which must be less than the margin.
float WordCache::LargestSum(const Segmentation& word) const {
  if (std::isinf(word.margin)) return std::numeric_limits<float>::infinity();
  const double own = word.characters * std::abs(segmenter_.pieces().unknown_score());
  const double largest = word.margin * 0x1p22 / word.characters - own;
  return std::nextafter(static_cast<float>(largest), -std::numeric_limits<float>::infinity());
}

bool WordCache::IsToBeChecked(std::string_view word) {
  const uint64_t count = new_words_++;
  return word.size() <= kMaxCheckedBytes && (count < kFirstChecked || count % kBetweenChecks == 0);
}

bool WordCache::AgreesWithSentencePiece(std::string_view word) {
  std::vector<int> ids;
  if (!processor_.Encode(word, &ids).ok()) return false;
  float sum = 0;
  found_.clear();
  segmenter_.Segment(normal_, &sum, &found_);
  if (found_ == ids) return true;
  std::vector<std::string> texts;
  if (!processor_.Encode(word, &texts).ok() || texts.size() != ids.size()) return false;
  const double theirs = segmenter_.pieces().ScoreOf(ids, texts);
  const auto additions = static_cast<double>(normal_.size());
  return std::abs(sum - theirs) <= additions * std::abs(theirs) * 0x1p-22;
}

const Word* WordCache::Remember(const WordKey& key) {
  if (words_.size() >= std::min(kMaxWords, kMaxWordsOfThreads / ThreadCount())) return nullptr;
  segmenter_.SegmentToKeep(normal_, &kept_);
  // Ids then tell the scores.
  if (kept_.ids.size() > Word::kMostIds || kept_.has_unknown) return nullptr;
  Word word{.key = key,
            .id_count = static_cast<uint32_t>(kept_.ids.size()),
            .largest_sum = LargestSum(kept_)};
  std::ranges::copy(kept_.ids, word.ids.begin());
  for (const int32_t id : kept_.ids) {
    word.magnitude += static_cast<float>(std::abs(segmenter_.pieces().score(id)));
  }
  return &words_.Add(word);
}

}  // namespace syntra
