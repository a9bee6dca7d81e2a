#include "data/word_cache.h"

#include <sentencepiece_processor.h>
#include <xxhash.h>

#include <cmath>

#include "core/thread.h"
#include "data/tokenizer_model.pb.h"

namespace syntra {
namespace {

constexpr std::string_view kSpaceMark = "\xe2\x96\x81";
constexpr size_t kMaxWordBytes = 256;
// In the caches of all threads together: about 100 MB. The words of an English corpus that are not
// among its first million are rare.
constexpr size_t kMaxWords = size_t{1} << 20;
constexpr int32_t kUnigram = 1;
constexpr int32_t kNormal = 1, kUnknown = 2, kControl = 3;

bool IsPrintableAscii(char c) { return c > 0x20 && c < 0x7f; }

// The built-in normalizers, none of which has a rule that reaches over a space between ASCII words.
bool IsKnownNormalizer(const std::string& name) {
  return name == "nmt_nfkc" || name == "nfkc" || name == "nmt_nfkc_cf" || name == "nfkc_cf";
}

bool AllowsWords(const tokenizer::ModelFile& model) {
  const auto& trainer = model.trainer();
  const auto& normalizer = model.normalizer();
  if (trainer.model_type() != kUnigram || trainer.treat_whitespace_as_suffix() ||
      trainer.byte_fallback() || !IsKnownNormalizer(normalizer.name()) ||
      !normalizer.add_dummy_prefix() || !normalizer.remove_extra_whitespaces() ||
      !normalizer.escape_whitespaces()) {
    return false;
  }
  bool has_space_mark = false;
  for (const auto& piece : model.pieces()) {
    if (piece.type() == kUnknown || piece.type() == kControl) continue;
    if (piece.type() != kNormal || piece.piece().empty()) return false;
    if (piece.piece().find(kSpaceMark, 1) != std::string::npos) return false;
    has_space_mark |= piece.piece() == kSpaceMark;
  }
  return has_space_mark;
}

}  // namespace

WordCache::WordCache(const sentencepiece::SentencePieceProcessor& processor)
    : processor_(processor), slots_(1024) {}

std::unique_ptr<WordCache> WordCache::MakeIfExact(
    const sentencepiece::SentencePieceProcessor& processor, const std::string& model_file) {
  tokenizer::ModelFile model;
  if (!model.ParseFromString(model_file) || !AllowsWords(model)) return nullptr;
  std::unique_ptr<WordCache> cache(new WordCache(processor));
  for (int32_t id = 0; id < model.pieces_size(); ++id) {
    const auto& piece = model.pieces(id);
    if (piece.type() == kNormal) cache->pieces_.Add(piece.piece(), id, piece.score());
  }
  cache->pieces_.Finish(processor.unk_id());
  const std::vector<int> parted = processor.EncodeAsIds("a b");
  for (const char space : {' ', '\t', '\n', '\r'}) {
    const std::string probe = {'a', space, 'b'};
    cache->is_space_[static_cast<uint8_t>(space)] = processor.EncodeAsIds(probe) == parted;
  }
  return cache;
}

std::string_view WordCache::NextWord(std::string_view text, size_t* at) const {
  const size_t begin = *at;
  for (size_t i = begin; i < text.size(); ++i) {
    if (!is_space_[static_cast<uint8_t>(text[i])]) continue;
    size_t end = i + 1;
    while (end < text.size() && is_space_[static_cast<uint8_t>(text[end])]) ++end;
    // Elsewhere a combining mark or a removed character next to the space could matter.
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

// Two sums of at most `characters` roundings each, at sums no larger than these, differ from the
// exact ones by less than the right-hand side's half.
bool WordCache::IsSafe(double margin, int32_t characters) const {
  const double largest = std::abs(sum_) + characters * std::abs(pieces_.unknown_score());
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
  if (!Normalize(text, &normal_)) return false;
  if (!word && text.size() <= kMaxWordBytes) Remember(text, hash, found_);
  pieces_.Segment(normal_, sum_, /*with_margin=*/false, &again_);
  ids->insert(ids->end(), again_.ids.begin(), again_.ids.end());
  for (const float score : again_.scores) sum_ += score;
  return true;
}

bool WordCache::Normalize(std::string_view word, std::string* normal) {
  normal->clear();
  if (!processor_.Encode(word, &parts_).ok()) return false;
  for (const std::string& part : parts_) *normal += part;
  pieces_.Segment(*normal, 0, word.size() <= kMaxWordBytes, &found_);
  if (found_.ids.size() != parts_.size()) return false;
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (processor_.PieceToId(parts_[i]) != found_.ids[i]) return false;
  }
  return true;
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

void WordCache::Remember(std::string_view word, uint64_t hash, const Segmentation& found) {
  if (words_.size() >= kMaxWords / ThreadCount()) return;
  if (2 * (words_.size() + 1) > slots_.size()) Grow();
  words_.push_back({.hash = hash,
                    .key_begin = keys_.size(),
                    .key_size = static_cast<uint32_t>(word.size()),
                    .id_begin = static_cast<uint32_t>(ids_.size()),
                    .id_count = static_cast<uint32_t>(found.ids.size()),
                    .score_begin = static_cast<uint32_t>(scores_.size()),
                    .score_count = static_cast<uint32_t>(found.scores.size()),
                    .margin = std::nextafter(static_cast<float>(found.margin), 0.0f),
                    .characters = found.characters});
  keys_ += word;
  ids_.insert(ids_.end(), found.ids.begin(), found.ids.end());
  scores_.insert(scores_.end(), found.scores.begin(), found.scores.end());
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
