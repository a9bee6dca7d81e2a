#include "data/tokenizer.h"

#include <sentencepiece_processor.h>

#include <mutex>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "data/word_cache.h"

namespace syntra {
namespace {

constexpr int64_t kMaxModelBytes = int64_t{256} << 20;
constexpr std::string_view kSentinelOpen = "<extra_id_";

std::string SentinelText(int32_t k) { return fmt::format("{}{}>", kSentinelOpen, k); }

// What a SentencePiece status means to a user: without "./src/file.cc(12) [condition]", behind
// which there is a text or, where the file cannot be parsed, nothing.
std::string ReasonOf(std::string_view message) {
  if (message.find(".cc(") != std::string_view::npos) {
    const size_t condition_end = message.rfind(']');
    message = condition_end == std::string_view::npos ? "" : message.substr(condition_end + 1);
  }
  message = StripSpace(message);
  if (message.ends_with('.')) message.remove_suffix(1);
  return message.empty() ? "it is cut short, damaged or another kind of file"
                         : std::string(message);
}

// Finds the next "<extra_id_K>" with K < limit at or behind `from`.
bool FindSentinel(std::string_view text, size_t from, int32_t limit, size_t* begin, size_t* end,
                  int32_t* k) {
  for (size_t at = text.find(kSentinelOpen, from); at != std::string_view::npos;
       at = text.find(kSentinelOpen, at + 1)) {
    const size_t digits = at + kSentinelOpen.size();
    const size_t close = text.find('>', digits);
    if (close == std::string_view::npos) return false;
    int64_t number = 0;
    if (!ParseInt64(text.substr(digits, close - digits), &number)) continue;
    if (number < 0 || number >= limit) continue;
    if (text.substr(at, close + 1 - at) != SentinelText(static_cast<int32_t>(number))) continue;
    *begin = at;
    *end = close + 1;
    *k = static_cast<int32_t>(number);
    return true;
  }
  return false;
}

}  // namespace

struct Tokenizer::Implementation {
  sentencepiece::SentencePieceProcessor processor;
  std::mutex mutex;  // of what follows
  std::unique_ptr<WordCache>
      no_words;  // an empty cache; null if words cannot be encoded one by one
  std::vector<std::unique_ptr<WordCache>> idle;  // used before, by no thread now

  // For one thread until it gives it back; null if there are no caches.
  std::unique_ptr<WordCache> Take() {
    const std::lock_guard lock(mutex);
    if (!no_words) return nullptr;
    if (idle.empty()) return std::make_unique<WordCache>(*no_words);
    std::unique_ptr<WordCache> cache = std::move(idle.back());
    idle.pop_back();
    return cache;
  }
  void GiveBack(std::unique_ptr<WordCache> cache) {
    const std::lock_guard lock(mutex);
    idle.push_back(std::move(cache));
  }
};

Tokenizer::Tokenizer(const Path& model, int32_t extra_ids)
    : Tokenizer(model, ReadWholeFile(model, kMaxModelBytes), extra_ids) {}

Tokenizer::Tokenizer(const Path& model, std::string model_content, int32_t extra_ids)
    : path_(model),
      content_(std::move(model_content)),
      extra_ids_(extra_ids),
      implementation_(std::make_unique<Implementation>()) {
  const std::string& content = content_;
  digest_ = DigestOf(content);
  auto& processor = implementation_->processor;
  const auto status = processor.LoadFromSerializedProto(content);
  if (content.empty() || !status.ok()) {
    Fail(ExitCode::kData,
         "{} is not a SentencePiece model: {}; give the .model file as SentencePiece wrote it",
         model.string(), content.empty() ? "it is empty" : ReasonOf(status.message()));
  }
  pieces_ = processor.GetPieceSize();
  eos_id_ = processor.eos_id();
  unknown_id_ = processor.unk_id();
  if (eos_id_ < 0) {
    Fail(ExitCode::kData,
         "{} has no end-of-sentence piece, which every example ends with; train the model with one",
         model.string());
  }
  implementation_->no_words = WordCache::MakeIfExact(processor, content);
}

Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;

std::vector<int32_t> Tokenizer::Encode(std::string_view text) const {
  std::vector<int32_t> ids;
  Encode(text, &ids);
  return ids;
}

void Tokenizer::Encode(std::string_view text, std::vector<int32_t>* ids) const {
  if (std::unique_ptr<WordCache> words = implementation_->Take()) {
    if (words->Encode(text, ids)) {
      implementation_->GiveBack(std::move(words));
      return;
    }
    Log().warn("{}: encoding word by word differs from SentencePiece; it is turned off",
               path_.string());
    const std::lock_guard lock(implementation_->mutex);
    implementation_->no_words.reset();
  }
  EncodePlainly(text, ids);
}

void Tokenizer::EncodePlainly(std::string_view text, std::vector<int32_t>* ids) const {
  static_assert(std::is_same_v<int, int32_t>);
  const auto status = implementation_->processor.Encode(text, ids);
  if (!status.ok()) Fail(ExitCode::kData, "cannot tokenize text: {}", ReasonOf(status.message()));
}

bool Tokenizer::EncodesByWords() const {
  const std::lock_guard lock(implementation_->mutex);
  return implementation_->no_words != nullptr;
}

std::vector<int32_t> Tokenizer::EncodeWithSentinels(std::string_view text) const {
  std::vector<int32_t> ids, part;
  size_t from = 0, begin, end;
  int32_t k;
  while (FindSentinel(text, from, extra_ids_, &begin, &end, &k)) {
    Encode(text.substr(from, begin - from), &part);
    ids.insert(ids.end(), part.begin(), part.end());
    ids.push_back(SentinelId(k));
    from = end;
  }
  Encode(text.substr(from), &part);
  ids.insert(ids.end(), part.begin(), part.end());
  return ids;
}

std::string Tokenizer::Decode(std::span<const int32_t> ids) const {
  std::string text;
  std::vector<int> run;
  const auto append = [&](const std::string& piece) {
    if (piece.empty()) return;
    if (!text.empty()) text += ' ';
    text += piece;
  };
  const auto flush = [&] {
    std::string piece;
    const auto status = implementation_->processor.Decode(run, &piece);
    SYNTRA_CHECK(status.ok(), "{}", std::string(status.message()));
    append(piece);
    run.clear();
  };
  for (const int32_t id : ids) {
    if (id == eos_id_) break;
    if (id == pad_id()) continue;
    if (id >= pieces_ && id < vocabulary_size()) {
      flush();
      append(SentinelText(vocabulary_size() - 1 - id));
    } else {
      run.push_back(id >= 0 && id < pieces_ ? id : unknown_id_);
    }
  }
  flush();
  return text;
}

std::string Tokenizer::PieceOf(int32_t id) const {
  SYNTRA_CHECK(id >= 0 && id < vocabulary_size(), "token id {}", id);
  if (id >= pieces_) return SentinelText(vocabulary_size() - 1 - id);
  return implementation_->processor.IdToPiece(id);
}

}  // namespace syntra
