// Text to token ids and back: a SentencePiece model with T5's sentinels above its pieces.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "base/file.h"

namespace syntra {

class Tokenizer {
 public:
  // Throws Error(kData) if the file is larger than 256 MiB or not a SentencePiece model with an
  // end-of-sentence piece.
  Tokenizer(const Path& model, int32_t extra_ids);
  // Of the file's content; `model` stands for it in messages.
  Tokenizer(const Path& model, std::string content, int32_t extra_ids);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;

  // Ids of `text`, equal to SentencePiece's; no EOS. "<extra_id_0>" in the text is ordinary text.
  // May be called from several threads; each has a word cache to itself meanwhile.
  std::vector<int32_t> Encode(std::string_view text) const;
  void Encode(std::string_view text, std::vector<int32_t>* ids) const;

  // SentencePiece alone, without the word cache.
  void EncodePlainly(std::string_view text, std::vector<int32_t>* ids) const;

  // Whether Encode works word by word; if not, it is SentencePiece's own.
  bool EncodesByWords() const;

  // Like Encode, but "<extra_id_K>" with K < extra_ids becomes sentinel K and cuts the text in two.
  std::vector<int32_t> EncodeWithSentinels(std::string_view text) const;

  // Text up to the first EOS. Padding is dropped, sentinels read "<extra_id_K>" between spaces, ids
  // outside the vocabulary read as the unknown piece.
  std::string Decode(std::span<const int32_t> ids) const;

  // The ids of SentencePiece's special pieces; padding is 0 even if the model does not name it.
  int32_t pad_id() const { return 0; }
  int32_t eos_id() const { return eos_id_; }
  int32_t unknown_id() const { return unknown_id_; }
  int32_t piece_count() const { return pieces_; }
  int32_t extra_ids() const { return extra_ids_; }
  int32_t vocabulary_size() const { return pieces_ + extra_ids_; }
  int32_t SentinelId(int32_t k) const { return pieces_ + extra_ids_ - 1 - k; }

  // "▁the", or "<extra_id_3>".
  std::string PieceOf(int32_t id) const;
  // Of the model file's bytes.
  const Digest& digest() const { return digest_; }
  const std::string& content() const { return content_; }
  const Path& path() const { return path_; }

 private:
  struct Implementation;

  Path path_;
  std::string content_;
  Digest digest_{};
  int32_t pieces_ = 0, extra_ids_ = 0, eos_id_ = 1, unknown_id_ = 2;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace syntra
