// SPDX-License-Identifier: Apache-2.0
#include "data/word_cache.h"

#include <sentencepiece_processor.h>
#include <xxhash.h>

#include <cmath>

#include "core/thread.h"
#include "data/tokenizer_model.pb.h"

namespace syntra {
namespace {

using tokenizer::ModelFile;

constexpr std::string_view kSpaceMark = "\xe2\x96\x81";
constexpr size_t kMaxWordBytes = 256;  // longer words are not cached
// Largest number of words in the caches of all threads together, about 100 MB. In an English corpus
// words that are not among the first million are rare.
constexpr size_t kMaxWords = size_t{1} << 20;
// SentencePiece takes about 250 bytes of memory a byte, and some time.
constexpr size_t kMaxCheckedBytes = 4096;
constexpr size_t kMaxKeptBytes = size_t{1} << 20;  // a larger buffer for normal forms is freed

bool IsPrintableAscii(char c) { return c > 0x20 && c < 0x7f; }

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
      parts_words_(PartsWords(model)),
      slots_(1024) {
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

bool WordCache::Encode(std::string_view text, std::vector<int32_t>* ids) {
  ids->clear();
  sum_ = 0;
  for (size_t at = 0; at < text.size();) {
    if (!Append(NextWord(text, &at), ids)) return false;
  }
  return true;
}

// Each of the two sums has at most `characters` roundings and never exceeds `largest` in magnitude,
// so its error is less than half of the right-hand side.
bool WordCache::IsSafe(double margin, int32_t characters) const {
  const double largest =
      std::abs(sum_) + characters * std::abs(segmenter_.pieces().unknown_score());
  return margin > characters * largest * 0x1p-22;
}

bool WordCache::Append(std::string_view text, std::vector<int32_t>* ids) {
  const uint64_t hash = XXH3_64bits(text.data(), text.size());
  const Word* word = Find(text, hash);
  if (word && IsSafe(word->margin, word->characters)) {
    const int32_t* first = ids_.data() + word->id_begin;
    ids->insert(ids->end(), first, first + word->id_count);
    for (uint32_t i = 0; i < word->score_count; ++i) sum_ += scores_[word->score_begin + i];
    return true;
  }
  normalizer_->Normalize(text, &normal_);
  if (!word) {
    if (text.size() <= kMaxCheckedBytes && !AgreesWithSentencePiece(text)) return false;
    if (parts_words_ && text.size() <= kMaxWordBytes) Remember(text, hash);
  }
  segmenter_.Segment(normal_, &sum_, ids);
  if (normal_.capacity() > kMaxKeptBytes) std::string().swap(normal_);
  return true;
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

const WordCache::Word* WordCache::Find(std::string_view word, uint64_t hash) const {
  const size_t mask = slots_.size() - 1;
  for (size_t slot = hash & mask; slots_[slot] != 0; slot = (slot + 1) & mask) {
    const Word& found = words_[slots_[slot] - 1];
    if (found.hash == hash && found.key_size == word.size() &&
        word == std::string_view(keys_).substr(found.key_begin, found.key_size)) {
      return &found;
    }
  }
  return nullptr;
}

void WordCache::Remember(std::string_view word, uint64_t hash) {
  if (words_.size() >= kMaxWords / ThreadCount()) return;
  segmenter_.SegmentToKeep(normal_, &kept_);
  if (2 * (words_.size() + 1) > slots_.size()) Grow();
  words_.push_back({.hash = hash,
                    .key_begin = keys_.size(),
                    .key_size = static_cast<uint32_t>(word.size()),
                    .id_begin = static_cast<uint32_t>(ids_.size()),
                    .id_count = static_cast<uint32_t>(kept_.ids.size()),
                    .score_begin = static_cast<uint32_t>(scores_.size()),
                    .score_count = static_cast<uint32_t>(kept_.scores.size()),
                    .margin = std::nextafter(static_cast<float>(kept_.margin), 0.0f),
                    .characters = kept_.characters});
  keys_ += word;
  ids_.insert(ids_.end(), kept_.ids.begin(), kept_.ids.end());
  scores_.insert(scores_.end(), kept_.scores.begin(), kept_.scores.end());
  const size_t mask = slots_.size() - 1;
  size_t slot = hash & mask;
  while (slots_[slot] != 0) slot = (slot + 1) & mask;
  slots_[slot] = static_cast<uint32_t>(words_.size());
}

void WordCache::Grow() {
  slots_.assign(slots_.size() * 2, 0);
  const size_t mask = slots_.size() - 1;
  for (size_t i = 0; i < words_.size(); ++i) {
    size_t slot = words_[i].hash & mask;
    while (slots_[slot] != 0) slot = (slot + 1) & mask;
    slots_[slot] = static_cast<uint32_t>(i + 1);
  }
}

}  // namespace syntra
