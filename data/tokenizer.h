// SPDX-License-Identifier: Apache-2.0
// Converts text to token ids and back: a SentencePiece model, with T5's sentinels above its pieces.
//
// Token 0 is padding and nothing else. If piece 0 of the model is a control piece other than the
// end of a sentence, like T5's <pad>, no text can produce it, and token ids equal piece ids. In all
// other models the token id of a piece is its piece id plus one. (SentencePiece's trainer makes
// piece 0 the unknown piece by default.)
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

// "<extra_id_K>" at bytes [begin, end) of a text.
struct SentinelPlace {
  size_t begin, end;
  int32_t k;
};

class Tokenizer {
 public:
  // Throws Error(kData) if the file cannot be read, is larger than 256 MiB or not a SentencePiece
  // model.
  Tokenizer(const Path& model, int32_t extra_ids);
  // Takes the content of a model file; messages name the file `model`.
  Tokenizer(const Path& model, std::string content, int32_t extra_ids);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;

  // Ids of `text`, without EOS. "<extra_id_0>" in the text is ordinary text. For unigram models the
  // ids are those of SentencePiece 0.1.97, whatever version is linked, and encoding takes 6 bytes
  // of memory for each byte of the longest word. For other models (BPE, words, characters) the
  // linked library makes the ids and takes about 200 bytes for each byte of text. Safe to call from
  // several threads; each call uses a word cache of its own.
  std::vector<int32_t> Encode(std::string_view text) const;
  void Encode(std::string_view text, std::vector<int32_t>* ids) const;

  // The ids that the linked library gives.
  void EncodePlainly(std::string_view text, std::vector<int32_t>* ids) const;

  // Whether Encode uses our own encoder (unigram models) rather than the library.
  bool HasOwnEncoder() const;

  // Like Encode, but "<extra_id_K>" with K < extra_ids becomes sentinel K. The texts before and
  // after it are encoded separately.
  std::vector<int32_t> EncodeWithSentinels(std::string_view text) const;

  // All occurrences of "<extra_id_K>" with K < extra_ids, in order.
  std::vector<SentinelPlace> FindSentinels(std::string_view text) const;

  // The text up to the first EOS. Padding is dropped. A sentinel becomes "<extra_id_K>" between
  // spaces, an id outside the vocabulary the unknown piece.
  std::string Decode(std::span<const int32_t> ids) const;
  // A text with which Decode's result begins for all ids that begin with `ids`: Decode(ids) without
  // the bytes of an incomplete character. Empty where the model has rules that rewrite decoded
  // text.
  std::string DecodeBeginning(std::span<const int32_t> ids) const;

  int32_t pad_id() const { return 0; }
  int32_t unknown_id() const { return unknown_id_; }
  // -1 if the model has none.
  int32_t eos_id() const { return eos_id_; }
  // The model's own begin-of-sentence and padding pieces, which are not used; -1 if it has none.
  int32_t bos_id() const { return bos_id_; }
  int32_t own_pad_id() const { return own_pad_id_; }

  int32_t piece_count() const { return pieces_; }
  // The token id of piece 0: 0 or 1.
  int32_t first_piece_id() const { return first_piece_id_; }
  int32_t extra_ids() const { return extra_ids_; }
  int32_t vocabulary_size() const { return first_piece_id_ + pieces_ + extra_ids_; }
  int32_t SentinelId(int32_t k) const { return vocabulary_size() - 1 - k; }

  // "▁the", "<extra_id_3>", or "<padding>" for a token 0 that is not a piece.
  std::string PieceOf(int32_t id) const;
  // Digest of the model file's bytes.
  const Digest& digest() const { return digest_; }
  // One line that names everything that decides the ids of a text. Tokenizers with equal identities
  // and equal extra_ids give equal ids, whatever version of the library or of this program is used.
  // It holds the digest in hexadecimal and, if they apply, "padding before pieces" and the version
  // of SentencePiece that the ids depend on. Files that hold ids, or parameters trained with them,
  // store the identity too.
  std::string identity() const;
  // The bytes of the model file.
  const std::string& content() const { return content_; }
  const Path& path() const { return path_; }

 private:
  struct Implementation;

  // Whether `id` is the token of a piece.
  bool IsPiece(int32_t id) const { return id >= first_piece_id_ && id < first_piece_id_ + pieces_; }

  Path path_;
  std::string content_;
  Digest digest_{};
  int32_t pieces_ = 0, first_piece_id_ = 0, extra_ids_ = 0;
  int32_t unknown_id_ = -1, eos_id_ = -1, bos_id_ = -1, own_pad_id_ = -1;
  std::unique_ptr<Implementation> implementation_;
};

// Throws Error(kData) if the model has no end-of-sentence piece: every example ends with it.
void CheckHasEos(const Tokenizer& tokenizer);

// Checks that a new model with `vocabulary_size` embedding rows can be trained with the tokenizer.
// Throws Error(kConfig) if there are more tokens than rows, and Error(kData) as CheckHasEos does.
void CheckCanTrain(const Tokenizer& tokenizer, int64_t vocabulary_size);

// Checks the same of a trained model. Its rows cannot change, so the message asks for another
// tokenizer.
void CheckFitsTrained(const Tokenizer& tokenizer, int64_t vocabulary_size);

// "900 tokens (800 pieces and 100 sentinels)"
std::string TokensText(const Tokenizer& tokenizer);

// How many embedding rows are enough for its tokens: a multiple of 128.
int32_t VocabularySizeFor(const Tokenizer& tokenizer);

}  // namespace syntra
