// SPDX-License-Identifier: Apache-2.0
#include "cli/gaps.h"

#include <algorithm>

#include "data/normalizer.h"

namespace syntra {
namespace {

// A model's vocabulary may be larger than the tokenizer's.
bool StartsWord(const Tokenizer& tokenizer, int32_t id) {
  return id < tokenizer.vocabulary_size() && tokenizer.PieceOf(id).starts_with(kSpaceMark);
}

}  // namespace

DecodeRequest RequestToGoOn(const Tokenizer& tokenizer, std::string_view text) {
  return {tokenizer.Encode(text), {}};
}

std::optional<std::vector<int32_t>> IdsAfter(const Tokenizer& tokenizer, std::string_view text,
                                             std::span<const int32_t> ids, std::string_view rest) {
  std::vector<int32_t> whole = tokenizer.Encode(std::string(text).append(rest));
  const auto [end, place] = std::ranges::mismatch(ids, whole);
  if (end != ids.end()) return std::nullopt;
  whole.erase(whole.begin(), place);
  return whole;
}

DecodeRequest RequestFor(const Tokenizer& tokenizer, std::string_view text) {
  DecodeRequest request{tokenizer.EncodeWithSentinels(text), {}};
  request.ids.push_back(tokenizer.eos_id());
  for (const SentinelPlace& place : tokenizer.FindSentinels(text)) {
    request.sentinels.insert(tokenizer.SentinelId(place.k));
  }
  return request;
}

Spans SpansOf(const Tokenizer& tokenizer, std::span<const int32_t> output) {
  Spans spans;
  std::vector<int32_t>* span = nullptr;  // null before the first sentinel and in one seen before
  for (const int32_t id : output) {
    if (id == tokenizer.eos_id()) break;
    const int32_t k = tokenizer.SentinelId(0) - id;
    if (k >= 0 && k < tokenizer.extra_ids()) {
      const auto [it, fresh] = spans.try_emplace(k);
      span = fresh ? &it->second : nullptr;
    } else if (span) {
      span->push_back(id);
    }
  }
  return spans;
}

// Whether a space stands before the output only the pieces of both together tell.
std::string GoOn(const Tokenizer& tokenizer, std::string_view text,
                 std::span<const int32_t> output) {
  std::vector<int32_t> ids = tokenizer.Encode(text);
  const std::string begun = tokenizer.Decode(ids);
  ids.insert(ids.end(), output.begin(), output.end());
  const std::string whole = tokenizer.Decode(ids);
  const bool continues = whole.starts_with(begun);
  std::string rest = continues ? whole.substr(begun.size()) : tokenizer.Decode(output);
  // Tokens do not tell of white space at the end of a text, so the model gives the next word's.
  const bool has_space =
      !text.empty() && std::string_view(" \t\r").find(text.back()) != std::string_view::npos;
  if (has_space && rest.starts_with(' ')) rest.erase(0, 1);
  return std::string(text) + rest;
}

std::string FillGaps(const Tokenizer& tokenizer, std::string_view text, const Spans& spans) {
  std::string filled;
  size_t from = 0;
  for (const SentinelPlace& place : tokenizer.FindSentinels(text)) {
    const auto span = spans.find(place.k);
    if (span == spans.end()) continue;
    filled += text.substr(from, place.begin - from);
    from = place.end;
    const bool empty = span->second.empty();
    const bool new_word = !empty && StartsWord(tokenizer, span->second.front());
    if (!new_word && filled.ends_with(' ')) filled.pop_back();
    // At the start of the line the space after an empty span stands between nothing.
    if (empty && filled.empty() && text.substr(from).starts_with(' ')) ++from;
    filled += tokenizer.Decode(span->second);
  }
  return filled.append(text.substr(from));
}

}  // namespace syntra
