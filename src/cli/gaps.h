// SPDX-License-Identifier: Apache-2.0
// Texts as requests to a model: texts with gaps "<extra_id_K>", which it fills, or beginnings of
// texts, which it continues.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decode/requests.h"

namespace syntra {

// The request of a text with gaps: its ids, EOS included, and its sentinels.
DecodeRequest RequestFor(const Tokenizer& tokenizer, std::string_view text);
// The request to continue a text: it has no EOS, and its output ends only at one. Corpora have no
// sentinels, so here they are plain text.
DecodeRequest RequestToGoOn(const Tokenizer& tokenizer, std::string_view text);
// The ids of `rest` where it follows `text` as it is; nothing if a token of both together has parts
// of each. `ids`: those of `text`.
std::optional<std::vector<int32_t>> IdsAfter(const Tokenizer& tokenizer, std::string_view text,
                                             std::span<const int32_t> ids, std::string_view rest);

// The span of each sentinel of a target or an output, by K; of one that comes twice, the first.
using Spans = std::map<int32_t, std::vector<int32_t>>;
Spans SpansOf(const Tokenizer& tokenizer, std::span<const int32_t> output);

// `text` with the gaps replaced by the spans; all else stays as it is. A gap that has no span stays
// a gap. A span that begins inside a word joins the word before it, and an empty one leaves no
// second space.
std::string FillGaps(const Tokenizer& tokenizer, std::string_view text, const Spans& spans);

// `text`, and the output after it.
std::string GoOn(const Tokenizer& tokenizer, std::string_view text,
                 std::span<const int32_t> output);

}  // namespace syntra
