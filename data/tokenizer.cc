// SPDX-License-Identifier: Apache-2.0
#include "data/tokenizer.h"

#include <sentencepiece_processor.h>

#include <mutex>

#include "base/crash_guard.h"
#include "base/divide.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "data/sentence_piece.h"
#include "data/tokenizer_model.pb.h"
#include "data/word_cache.h"

namespace syntra {
namespace {

constexpr int64_t kMaxModelBytes = int64_t{256} << 20;
// The version whose ids are the standard. T5's models and the recordings in the tests agree with
// it.
constexpr std::string_view kReferenceVersion = "0.1.97";
constexpr std::string_view kPaddingText = "<padding>";
constexpr std::string_view kReplacementCharacter = "\xef\xbf\xbd";  // of bytes that are none
constexpr std::string_view kSentinelOpen = "<extra_id_";
constexpr char kModel[] = "SentencePiece model";  // what a CrashGuard is parsing

std::string SentinelText(int32_t k) { return fmt::format("{}{}>", kSentinelOpen, k); }

// Why the library cannot read a model.
std::string ProblemOf(std::string_view message) {
  const std::string reason = ReasonOfStatus(message);
  return reason.empty() ? "it is cut short, damaged or another kind of file" : reason;
}

}  // namespace

struct Tokenizer::Implementation {
  sentencepiece::SentencePieceProcessor processor;
  bool is_unigram = false;
  bool rewrites_text = false;                    // after decoding
  std::mutex mutex;                              // guards the two members below
  std::unique_ptr<WordCache> no_words;           // an empty cache; null if the library encodes
  std::vector<std::unique_ptr<WordCache>> idle;  // caches that no thread is using

  // A cache for the calling thread until it returns it; null if there are no caches.
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
    : Tokenizer(model, ReadWholeFile(model, kMaxModelBytes, ExitCode::kData), extra_ids) {}

Tokenizer::Tokenizer(const Path& model, std::string model_content, int32_t extra_ids)
    : path_(model),
      content_(std::move(model_content)),
      extra_ids_(extra_ids),
      implementation_(std::make_unique<Implementation>()) {
  const std::string& content = content_;
  digest_ = DigestOf(content);
  auto& processor = implementation_->processor;
  const CrashGuard guard(ExitCode::kData, kModel, path_.c_str());
  const auto status = processor.LoadFromSerializedProto(content);
  if (content.empty() || !status.ok()) {
    Fail(ExitCode::kData,
         "{} is not a SentencePiece model: {}; give the .model file as SentencePiece wrote it",
         model.string(), content.empty() ? "it is empty" : ProblemOf(status.message()));
  }
  const ErrorContext context([&] { return "reading " + model.string(); });
  tokenizer::ModelFile file;
  if (!file.ParseFromString(content)) Fail(ExitCode::kData, "the SentencePiece model is damaged");
  implementation_->no_words = WordCache::MakeIfUnigram(processor, file);
  implementation_->is_unigram = implementation_->no_words != nullptr;
  implementation_->rewrites_text = !file.denormalizer().rules().empty();
  pieces_ = processor.GetPieceSize();
  const bool is_free =
      file.pieces(0).type() == tokenizer::ModelFile::CONTROL && processor.eos_id() != 0;
  first_piece_id_ = is_free ? 0 : 1;
  const auto token = [&](int piece) { return piece < 0 ? -1 : piece + first_piece_id_; };
  unknown_id_ = token(processor.unk_id());
  eos_id_ = token(processor.eos_id());
  bos_id_ = token(processor.bos_id());
  own_pad_id_ = token(processor.pad_id());
}

Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;

std::vector<int32_t> Tokenizer::Encode(std::string_view text) const {
  std::vector<int32_t> ids;
  Encode(text, &ids);
  return ids;
}

void Tokenizer::Encode(std::string_view text, std::vector<int32_t>* ids) const {
  const CrashGuard guard(ExitCode::kData, kModel, path_.c_str());
  std::unique_ptr<WordCache> words = implementation_->Take();
  if (!words) return EncodePlainly(text, ids);
  if (words->Encode(text, ids)) {
    implementation_->GiveBack(std::move(words));
    for (int32_t& id : *ids) id += first_piece_id_;
    return;
  }
  {
    const std::lock_guard lock(implementation_->mutex);
    implementation_->no_words.reset();
  }
  Log().warn(
      "{}: the program's own encoder and SentencePiece {} disagree on a text; the library is used "
      "from now on",
      path_.string(), SentencePieceVersion());
  EncodePlainly(text, ids);
}

void Tokenizer::EncodePlainly(std::string_view text, std::vector<int32_t>* ids) const {
  static_assert(std::is_same_v<int, int32_t>);
  const CrashGuard guard(ExitCode::kData, kModel, path_.c_str());
  const auto status = implementation_->processor.Encode(text, ids);
  if (!status.ok()) Fail(ExitCode::kData, "cannot tokenize text: {}", ProblemOf(status.message()));
  for (int32_t& id : *ids) id += first_piece_id_;
}

bool Tokenizer::HasOwnEncoder() const {
  const std::lock_guard lock(implementation_->mutex);
  return implementation_->no_words != nullptr;
}

std::vector<SentinelPlace> Tokenizer::FindSentinels(std::string_view text) const {
  std::vector<SentinelPlace> places;
  for (size_t at = text.find(kSentinelOpen); at != std::string_view::npos;
       at = text.find(kSentinelOpen, at + 1)) {
    constexpr size_t kMostDigits = 10;
    const std::string_view behind = text.substr(at + kSentinelOpen.size(), kMostDigits + 1);
    int64_t number = 0;
    if (!ParseInt64(behind.substr(0, behind.find('>')), &number)) continue;
    if (number < 0 || number >= extra_ids_) continue;
    const auto k = static_cast<int32_t>(number);
    const std::string sentinel = SentinelText(k);
    if (text.substr(at).starts_with(sentinel)) places.push_back({at, at + sentinel.size(), k});
  }
  return places;
}

std::vector<int32_t> Tokenizer::EncodeWithSentinels(std::string_view text) const {
  std::vector<int32_t> ids, part;
  size_t from = 0;
  for (const SentinelPlace& place : FindSentinels(text)) {
    Encode(text.substr(from, place.begin - from), &part);
    ids.insert(ids.end(), part.begin(), part.end());
    ids.push_back(SentinelId(place.k));
    from = place.end;
  }
  Encode(text.substr(from), &part);
  ids.insert(ids.end(), part.begin(), part.end());
  return ids;
}

std::string Tokenizer::Decode(std::span<const int32_t> ids) const {
  const CrashGuard guard(ExitCode::kData, kModel, path_.c_str());
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
    if (id == pad_id()) continue;
    if (id > 0 && id == eos_id_) break;
    if (IsPiece(id)) {
      run.push_back(id - first_piece_id_);
    } else if (id > 0 && id < vocabulary_size()) {
      flush();
      append(SentinelText(vocabulary_size() - 1 - id));
    } else {
      run.push_back(unknown_id_ - first_piece_id_);
    }
  }
  flush();
  return text;
}

std::string Tokenizer::DecodeBeginning(std::span<const int32_t> ids) const {
  if (implementation_->rewrites_text) return "";
  std::string text = Decode(ids);
  while (text.ends_with(kReplacementCharacter)) {
    text.resize(text.size() - kReplacementCharacter.size());
  }
  return text;
}

std::string Tokenizer::PieceOf(int32_t id) const {
  SYNTRA_CHECK(id >= 0 && id < vocabulary_size(), "token id {}", id);
  if (IsPiece(id)) return implementation_->processor.IdToPiece(id - first_piece_id_);
  return id == pad_id() ? std::string(kPaddingText) : SentinelText(vocabulary_size() - 1 - id);
}

std::string Tokenizer::identity() const {
  std::string identity = ToHex(digest_);
  if (first_piece_id_ > 0) identity += ", padding before pieces";
  if (!implementation_->is_unigram && SentencePieceVersion() != kReferenceVersion) {
    identity += fmt::format(", encoded by SentencePiece {}", SentencePieceVersion());
  }
  return identity;
}

void CheckHasEos(const Tokenizer& tokenizer) {
  if (tokenizer.eos_id() >= 0) return;
  Fail(ExitCode::kData,
       "{} has no end-of-sentence piece, which ends every example; train the SentencePiece model "
       "with --pad_id=0 --eos_id=1 --unk_id=2 --bos_id=-1",
       tokenizer.path().string());
}

void CheckCanTrain(const Tokenizer& tokenizer, int64_t vocabulary_size) {
  CheckHasEos(tokenizer);
  if (tokenizer.vocabulary_size() <= vocabulary_size) return;
  Fail(ExitCode::kConfig,
       "model.vocabulary_size {} is smaller than the tokenizer's {}; set it to {}", vocabulary_size,
       TokensText(tokenizer), VocabularySizeFor(tokenizer));
}

void CheckFitsTrained(const Tokenizer& tokenizer, int64_t vocabulary_size) {
  CheckHasEos(tokenizer);
  if (tokenizer.vocabulary_size() <= vocabulary_size) return;
  Fail(ExitCode::kConfig,
       "the tokenizer {} has {}, but the model, which has been trained, has rows for {} "
       "(model.vocabulary_size); use the tokenizer and the data.extra_ids of its training (a "
       "checkpoint holds its tokenizer, which is taken where none is given)",
       tokenizer.path().string(), TokensText(tokenizer), vocabulary_size);
}

std::string TokensText(const Tokenizer& tokenizer) {
  return fmt::format("{} tokens ({} pieces{} and {} sentinels)", tokenizer.vocabulary_size(),
                     tokenizer.piece_count(), tokenizer.first_piece_id() > 0 ? ", padding" : "",
                     tokenizer.extra_ids());
}

int32_t VocabularySizeFor(const Tokenizer& tokenizer) {
  return DivideUp(tokenizer.vocabulary_size(), 128) * 128;
}

}  // namespace syntra
