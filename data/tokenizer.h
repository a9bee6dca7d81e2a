// SPDX-License-Identifier: Apache-2.0
// Text to token ids and back: a SentencePiece model with T5's sentinels above its pieces.
//
// Token 0 is padding and nothing else. Where piece 0 of the model is a control piece other than the
// end of a sentence, as T5's <pad>, text cannot give it, and token ids are piece ids. In all other
// models (SentencePiece's trainer puts the unknown piece there unless it is told otherwise) the
// token of a piece is its number plus one.
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

// "<extra_id_K>" in a text: bytes [begin, end).
struct SentinelPlace {
  size_t begin, end;
  int32_t k;
};

class Tokenizer {
 public:
  // Throws Error(kData) if the file is larger than 256 MiB or not a SentencePiece model.
  Tokenizer(const Path& model, int32_t extra_ids);
  // Of the file's content; `model` stands for it in messages.
  Tokenizer(const Path& model, std::string content, int32_t extra_ids);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;

  // Ids of `text`; no EOS. "<extra_id_0>" in the text is ordinary text. Of unigram models the ids
  // are those of SentencePiece 0.1.97 with any version of the library, and memory is 6 bytes for
  // each byte of the longest word; of the other models (BPE, words, characters) they are the
  // library's, at some 200 bytes a byte of text. May be called from several threads; each has a
  // word cache to itself meanwhile.
  std::vector<int32_t> Encode(std::string_view text) const;
  void Encode(std::string_view text, std::vector<int32_t>* ids) const;

  // The ids of the linked library.
  void EncodePlainly(std::string_view text, std::vector<int32_t>* ids) const;

  // Whether Encode works by itself; if not, by the library.
  bool HasOwnEncoder() const;

  // Like Encode, but "<extra_id_K>" with K < extra_ids becomes sentinel K and cuts the text in two.
  std::vector<int32_t> EncodeWithSentinels(std::string_view text) const;

  // Every "<extra_id_K>" with K < extra_ids, in the order of the text.
  std::vector<SentinelPlace> FindSentinels(std::string_view text) const;

  // Text up to the first EOS. Padding is dropped, sentinels read "<extra_id_K>" between spaces, ids
  // outside the vocabulary read as the unknown piece.
  std::string Decode(std::span<const int32_t> ids) const;

  int32_t pad_id() const { return 0; }
  int32_t unknown_id() const { return unknown_id_; }
  // -1 if the model has none.
  int32_t eos_id() const { return eos_id_; }
  // Of the model's own begin-of-sentence and padding pieces, which are not used; -1 if it has none.
  int32_t bos_id() const { return bos_id_; }
  int32_t own_pad_id() const { return own_pad_id_; }

  int32_t piece_count() const { return pieces_; }
  // The token of piece 0: 1 where 0 is padding alone.
  int32_t first_piece_id() const { return first_piece_id_; }
  int32_t extra_ids() const { return extra_ids_; }
  int32_t vocabulary_size() const { return first_piece_id_ + pieces_ + extra_ids_; }
  int32_t SentinelId(int32_t k) const { return vocabulary_size() - 1 - k; }

  // "▁the", or "<extra_id_3>", or "<padding>" for a 0 that is no piece.
  std::string PieceOf(int32_t id) const;
  // Of the model file's bytes.
  const Digest& digest() const { return digest_; }
  // Whatever decides the ids of a text, on one line: tokenizers with equal identities (and equal
  // extra_ids) give equal ids, whatever library and version of this program they run with. The
  // digest in hexadecimal and, only where they apply, "padding before pieces" and the version of
  // SentencePiece that the ids depend on. What keeps ids, or parameters that were trained with
  // them, keeps this beside.
  std::string identity() const;
  // The bytes of the model file.
  const std::string& content() const { return content_; }
  const Path& path() const { return path_; }

 private:
  struct Implementation;

  // Whether `id` is one of the model's pieces.
  bool IsPiece(int32_t id) const { return id >= first_piece_id_ && id < first_piece_id_ + pieces_; }

  Path path_;
  std::string content_;
  Digest digest_{};
  int32_t pieces_ = 0, first_piece_id_ = 0, extra_ids_ = 0;
  int32_t unknown_id_ = -1, eos_id_ = -1, bos_id_ = -1, own_pad_id_ = -1;
  std::unique_ptr<Implementation> implementation_;
};

// Throws Error(kData) if the model has no end-of-sentence piece, which ends every example.
void CheckHasEos(const Tokenizer& tokenizer);

// Throws unless a model with `vocabulary_size` rows can be trained with the tokenizer:
// Error(kConfig) if there are more tokens than rows, and as CheckHasEos.
void CheckCanTrain(const Tokenizer& tokenizer, int64_t vocabulary_size);

// Of the linked SentencePiece library, e.g. "0.1.97".
std::string_view SentencePieceVersion();

}  // namespace syntra
