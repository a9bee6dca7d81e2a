// SPDX-License-Identifier: Apache-2.0
#include "data/word_cache.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <array>
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
// Largest number of words in the caches of all threads together.
constexpr size_t kMaxWordsOfThreads = 12 * kMaxWords;
// New words that SentencePiece checks: the first kFirstChecked, then one of every kBetweenChecks.
constexpr uint64_t kFirstChecked = 1024, kBetweenChecks = 256;
// SentencePiece takes about 250 bytes of memory a byte, and some time.
constexpr size_t kMaxCheckedBytes = 4096;
constexpr size_t kMaxKeptBytes = size_t{1} << 20;  // a larger buffer for normal forms is freed
constexpr size_t kRoom = 256;                      // ids
constexpr size_t kMostUnsummed = 4096;  // ids; roundings of so many are far below the bound's slack

}  // namespace

WordCache::WordCache(const sentencepiece::SentencePieceProcessor& processor, const ModelFile& model)
    : processor_(processor),
      normalizer_(std::make_shared<const Normalizer>(model)),
      segmenter_(std::make_shared<const PieceTable>(model)),
      splitter_(model, *normalizer_) {}

std::unique_ptr<WordCache> WordCache::MakeIfUnigram(
    const sentencepiece::SentencePieceProcessor& processor, const ModelFile& model) {
  if (model.trainer().model_type() != tokenizer::TrainerSettings::UNIGRAM) return nullptr;
  return std::unique_ptr<WordCache>(new WordCache(processor, model));
}

bool WordCache::Encode(std::string_view text, std::vector<int32_t>* ids) {
  id_count_ = summed_ = 0;
  sum_ = 0;
  magnitude_ = 0;
  splitter_.Begin(text);
  std::array<TextWord, 16> ahead;  // words that come nearer while those before them are looked up
  for (size_t found = 0, done = 0;; ++done) {
    for (; found - done < ahead.size() && splitter_.Next(&ahead[found % ahead.size()]); ++found) {
      words_.Prefetch(ahead[found % ahead.size()].hash);
    }
    if (done == found) break;
    if (!Append(ahead[done % ahead.size()], ids)) return false;
  }
  ids->resize(id_count_);
  return true;
}

bool WordCache::Append(const TextWord& word, std::vector<int32_t>* ids) {
  const Word* cached = word.key.empty() ? nullptr : words_.Find(word.key, word.hash);
  return (cached && AppendCached(*cached, ids)) || AppendNew(word, cached != nullptr, ids);
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

bool WordCache::AppendNew(const TextWord& word, bool cached, std::vector<int32_t>* ids) {
  if (!cached) {
    if (IsToBeChecked(word) && !AgreesWithSentencePiece(word)) return false;
    const Word* kept = word.key.empty() ? nullptr : Remember(word);
    if (kept && AppendCached(*kept, ids)) return true;
  }
  FindSum(*ids);
  ids->resize(id_count_);
  segmenter_.Segment(NormalForm(word), &sum_, ids);
  id_count_ = summed_ = ids->size();
  magnitude_ = std::abs(sum_);
  if (normal_.capacity() > kMaxKeptBytes) std::string().swap(normal_);
  return true;
}

std::string_view WordCache::NormalForm(const TextWord& word) {
  normalizer_->Normalize(word.text, &normal_);
  std::string_view normal = normal_;
  if (!word.after_space) normal.remove_prefix(kSpaceMark.size());
  return normal;
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

bool WordCache::IsToBeChecked(const TextWord& word) {
  const uint64_t count = new_words_++;
  return word.text.size() <= kMaxCheckedBytes &&
         (count < kFirstChecked || count % kBetweenChecks == 0);
}

bool WordCache::AgreesWithSentencePiece(const TextWord& word) {
  std::string text;
  std::vector<int32_t> found;
  float sum = 0;
  size_t additions = 0;
  const auto append = [&](const TextWord& next) {
    text += next.text;
    const std::string_view normal = NormalForm(next);
    additions += normal.size();
    segmenter_.Segment(normal, &sum, &found);
  };
  // SentencePiece begins every text with a space mark, so another word must stand before this one:
  // the character that does in the text.
  if (!word.after_space) append({.text = {word.text.data() - 1, 1}});
  append(word);
  std::vector<int> ids;
  if (!processor_.Encode(text, &ids).ok()) return false;
  if (found == ids) return true;
  std::vector<std::string> texts;
  if (!processor_.Encode(text, &texts).ok() || texts.size() != ids.size()) return false;
  const double theirs = segmenter_.pieces().ScoreOf(ids, texts);
  return std::abs(sum - theirs) <= static_cast<double>(additions) * std::abs(theirs) * 0x1p-22;
}

const Word* WordCache::Remember(const TextWord& word) {
  if (words_.size() >= std::min(kMaxWords, kMaxWordsOfThreads / ThreadCount())) return nullptr;
  segmenter_.SegmentToKeep(NormalForm(word), &kept_);
  // Ids then tell the scores.
  if (kept_.ids.size() > Word::kMostIds || kept_.has_unknown) return nullptr;
  Word cached{.key = word.key,
              .id_count = static_cast<uint32_t>(kept_.ids.size()),
              .largest_sum = LargestSum(kept_)};
  std::ranges::copy(kept_.ids, cached.ids.begin());
  for (const int32_t id : kept_.ids) {
    cached.magnitude += static_cast<float>(std::abs(segmenter_.pieces().score(id)));
  }
  return &words_.Add(cached);
}

}  // namespace syntra
