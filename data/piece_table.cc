// SPDX-License-Identifier: Apache-2.0
#include "data/piece_table.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/error.h"
#include "base/text.h"
#include "base/utf8.h"
#include "data/tokenizer_model.pb.h"

namespace syntra {
namespace {

using tokenizer::ModelFile;

constexpr float kUnknownPenalty = 10.0f;

// The byte that a piece means: 10 for "<0x0A>".
uint8_t ByteOf(std::string_view piece) {
  uint8_t byte = 0;
  const char* const digits = piece.data() + 3;
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece.back() != '>' ||
      std::from_chars(digits, digits + 2, byte, 16).ptr != digits + 2) {
    Fail(ExitCode::kData, "its byte piece {} is not written as <0x00>", Printable(piece, 20));
  }
  return byte;
}

}  // namespace

PieceTable::PieceTable(const ModelFile& model)
    : scores_(model.pieces_size() + 1), lengths_(model.pieces_size()) {
  if (model.pieces_size() > ByteTrie::kMostValue + 1) {
    Fail(ExitCode::kData, "it has {} pieces, more than {}", model.pieces_size(),
         ByteTrie::kMostValue + 1);
  }
  scores_[kNoPiece + 1] = -std::numeric_limits<double>::infinity();
  float lowest = std::numeric_limits<float>::max(), highest = std::numeric_limits<float>::min();
  for (const auto& piece : model.pieces()) {
    if (piece.type() != ModelFile::NORMAL) continue;
    lowest = std::min(lowest, piece.score());
    highest = std::max(highest, piece.score());
  }
  unknown_score_ = lowest - kUnknownPenalty;
  std::vector<ByteTrie::Entry> entries;
  for (int32_t id = 0; id < model.pieces_size(); ++id) {
    const auto& piece = model.pieces(id);
    const std::string& text = piece.piece();
    switch (piece.type()) {
      case ModelFile::NORMAL:
        scores_[id + 1] = piece.score();
        break;
      case ModelFile::USER_DEFINED:
        scores_[id + 1] = static_cast<float>(text.size()) * highest - 0.1;
        break;
      case ModelFile::BYTE:  // "<0x0A>"
        byte_ids_.resize(256);
        byte_ids_[ByteOf(text)] = id;
        continue;
      case ModelFile::UNKNOWN:
        unknown_id_ = id;
        continue;
      case ModelFile::CONTROL:
      case ModelFile::UNUSED:
        continue;
    }
    if (text.empty()) Fail(ExitCode::kData, "its piece {} is empty", id);
    entries.emplace_back(text, id);
    lengths_[id] = static_cast<uint32_t>(text.size());
    longest_ = std::max(longest_, text.size());
  }
  trie_ = ByteTrie(std::move(entries));
}

double PieceTable::ScoreOf(std::span<const int32_t> ids, std::span<const std::string> texts) const {
  double sum = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] == unknown_id_) {
      sum += static_cast<double>(CodePointCount(texts[i])) * unknown_score_;
    } else if (const auto byte = std::ranges::find(byte_ids_, ids[i]); byte != byte_ids_.end()) {
      if (!ContinuesCharacter(static_cast<char>(byte - byte_ids_.begin()))) sum += unknown_score_;
    } else {
      sum += score(ids[i]);
    }
  }
  return sum;
}

}  // namespace syntra
