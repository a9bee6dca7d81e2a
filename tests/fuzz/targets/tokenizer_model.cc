// SPDX-License-Identifier: Apache-2.0
// A SentencePiece model as our own encoder reads it, without the library: damaged or not, it makes
// ids of pieces that the model has.
#include <memory>

#include "data/normalizer.h"
#include "data/piece_table.h"
#include "data/segmenter.h"
#include "data/tokenizer_model.pb.h"
#include "fuzz/target.h"

namespace syntra {
namespace {

constexpr const char* kTexts[] = {"", "a", "The  quick\tbrown fox. ",
                                  "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 \xff"};

void CheckIds(const tokenizer::ModelFile& model, std::span<const int32_t> ids) {
  for (const int32_t id : ids) SYNTRA_CHECK(id >= 0 && id < model.pieces_size(), "id {}", id);
}

void Run(std::string_view input) {
  tokenizer::ModelFile model;
  if (!model.ParseFromArray(input.data(), static_cast<int>(input.size())) ||
      model.pieces_size() == 0) {
    Fail(ExitCode::kData, "no model");
  }
  const Normalizer normalizer(model);
  Segmenter segmenter(std::make_shared<const PieceTable>(model));
  for (const std::string_view text : kTexts) {
    std::string normal;
    normalizer.Normalize(text, &normal);
    std::vector<int32_t> ids;
    float sum = 0;
    segmenter.Segment(normal, &sum, &ids);
    CheckIds(model, ids);
    Segmentation kept;
    segmenter.SegmentToKeep(normal, &kept);
    CheckIds(model, kept.ids);
  }
}

// With a piece for each byte, a symbol of the user's and a rule.
std::string ModelOfEveryKind() {
  using tokenizer::ModelFile;
  ModelFile model;
  const auto add = [&](const std::string& text, float score, ModelFile::Type type) {
    auto* piece = model.add_pieces();
    piece->set_piece(text);
    piece->set_score(score);
    piece->set_type(type);
  };
  add("<unk>", 0, ModelFile::UNKNOWN);
  add("</s>", 0, ModelFile::CONTROL);
  for (int byte = 0; byte < 256; ++byte) add(fmt::format("<0x{:02X}>", byte), 0, ModelFile::BYTE);
  add("\xe2\x96\x81", -1, ModelFile::NORMAL);
  add("The", -2.5, ModelFile::NORMAL);
  add("fox", 0, ModelFile::USER_DEFINED);
  // A trie of one unit, in which no rule is found.
  model.mutable_normalizer()->set_rules(std::string("\4\0\0\0\0\0\0\0", 8) + "x");
  return model.SerializeAsString();
}

std::vector<std::string> Seeds() {
  return {SourceFile("tests/golden/t5_v1_0/spiece.model"),
          SourceFile("tests/checkpoint/version_1/tiny.model"), ModelOfEveryKind()};
}

}  // namespace

const Target fuzz_tokenizer_model = {
    .name = "tokenizer_model",
    .refusals = {ExitCode::kData},
    .run = Run,
    .seeds = Seeds,
    .tokens = {"<0x0A>", "<0xZZ>", "\xe2\x96\x81", "The", "\x0a\x00"},
    .mutations = 2000};

}  // namespace syntra
