// SPDX-License-Identifier: Apache-2.0
// Any text through a tokenizer: our own encoder gives SentencePiece's ids, and a text without gaps
// to fill stays as it is.
#include "cli/gaps.h"
#include "data/tokenizer.h"
#include "fuzz/target.h"

namespace syntra {
namespace {

void Check(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<int32_t> ids, plain;
  tokenizer.Encode(text, &ids);
  tokenizer.EncodePlainly(text, &plain);
  SYNTRA_CHECK(ids == plain, "{} ids, SentencePiece gives {}", ids.size(), plain.size());
  SYNTRA_CHECK(tokenizer.HasOwnEncoder());
  tokenizer.Decode(ids);
  const DecodeRequest request = RequestFor(tokenizer, text);
  for (const int32_t id : request.ids) {
    SYNTRA_CHECK(id >= 0 && id < tokenizer.vocabulary_size(), "id {}", id);
    tokenizer.PieceOf(id);
  }
  SYNTRA_CHECK(FillGaps(tokenizer, text, {}) == text);
  // The ids of the text as if they were a model's output.
  FillGaps(tokenizer, text, SpansOf(tokenizer, request.ids));
  GoOn(tokenizer, text, request.ids);
}

void Run(std::string_view input) {
  static const Tokenizer sample("sample", SourceFile("data/sample/spiece.model"), 100);
  static const Tokenizer small("small", SourceFile("tests/golden/t5_v1_0/spiece.model"), 12);
  Check(sample, input);
  Check(small, input);
  std::vector<int32_t> ids(input.begin(), input.end());
  small.Decode(ids);
  small.DecodeBeginning(ids);
}

std::vector<std::string> Seeds() {
  return {"Thank you <extra_id_0> me to your party <extra_id_1> week.",
          "d\xc3\xb6"
          "cument \xef\xac\x81 \xe2\x84\xa2 \xf0\x9f\x98\x80  \t\n end",
          "don't  stop. {~}a\xcc\x88~{a, 1990s\t(x)-\xc3\xa9-y",
          std::string(300, 'a') + " b " + std::string(70, '\xc3'), "\xe2\x96\x81<s></s><unk><pad>"};
}

}  // namespace

const Target fuzz_tokenizer_text = {
    .name = "tokenizer_text",
    .refusals = {},
    .run = Run,
    .seeds = Seeds,
    .tokens = {"<extra_id_0>", "<extra_id_99>", "<extra_id_", ">", " ", "\xe2\x96\x81", "\xc2\xa0",
               "</s>", "\xef\xbf\xbd", "\xf0\x9f", "\xe3\x80\x80", "\xcc\x88", "~", "a", "."},
    .mutations = 2000,
    .longest = 4096};

}  // namespace syntra
