// SPDX-License-Identifier: Apache-2.0
#include "data/normalizer.h"

#include <cstring>

#include "base/error.h"
#include "base/utf8.h"
#include "data/tokenizer_model.pb.h"

namespace syntra {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

// The fields of a unit of the trie.
bool HasLeaf(uint32_t unit) { return unit >> 8 & 1; }
uint32_t LabelOf(uint32_t unit) { return unit & (1u << 31 | 0xff); }
uint32_t ValueOf(uint32_t unit) { return unit & ~(1u << 31); }
uint32_t OffsetOf(uint32_t unit) { return unit >> 10 << ((unit & 1u << 9) >> 6); }

}  // namespace

Normalizer::Normalizer(const tokenizer::ModelFile& model)
    : space_(model.normalizer().escape_whitespaces() ? kSpaceMark : " "),
      adds_space_(model.normalizer().add_dummy_prefix()),
      adds_it_behind_(model.trainer().treat_whitespace_as_suffix()),
      trims_(model.normalizer().remove_extra_whitespaces()) {
  std::vector<ByteTrie::Entry> symbols;
  for (const auto& piece : model.pieces()) {
    if (piece.type() != tokenizer::ModelFile::USER_DEFINED) continue;
    if (piece.piece().empty()) Fail(ExitCode::kData, "one of its symbols is empty");
    symbols.emplace_back(piece.piece(), 0);
  }
  user_defined_ = ByteTrie(std::move(symbols));
  ReadRules(model.normalizer().rules());
  FindPlainBytes();
}

// The rules are: the size of the trie in bytes, the trie, the normal forms.
void Normalizer::ReadRules(const std::string& rules) {
  if (rules.empty()) return;
  uint32_t bytes = 0;
  if (rules.size() > sizeof bytes) std::memcpy(&bytes, rules.data(), sizeof bytes);
  if (bytes == 0 || bytes % sizeof(uint32_t) != 0 || bytes >= rules.size() - sizeof bytes) {
    Fail(ExitCode::kData, "its normalization rules are damaged");
  }
  trie_.resize(bytes / sizeof(uint32_t));
  std::memcpy(trie_.data(), rules.data() + sizeof bytes, bytes);
  normal_forms_ = rules.substr(sizeof bytes + bytes);
}

// From the children's place of a node to the child that `byte` leads to, if there is one.
bool Normalizer::Step(uint32_t* at, uint8_t byte) const {
  *at ^= byte;
  return *at < trie_.size() && LabelOf(trie_[*at]) == byte;
}

void Normalizer::FindPlainBytes() {
  for (int c = 0x21; c < 0x7f && user_defined_.empty(); ++c) {
    is_plain_[c] = FindRule(std::string(1, static_cast<char>(c))).bytes == 0;
    uint32_t at = trie_.empty() ? 0 : OffsetOf(trie_[0]);
    if (!Step(&at, static_cast<uint8_t>(c))) continue;
    for (int next = 0; next < 0x80; ++next) {
      uint32_t child = at ^ OffsetOf(trie_[at]);
      if (Step(&child, static_cast<uint8_t>(next))) is_plain_[c] = false;
    }
  }
}

size_t Normalizer::PlainBytes(std::string_view text) const {
  size_t bytes = 0;
  while (bytes < text.size() && is_plain_[static_cast<uint8_t>(text[bytes])]) ++bytes;
  // The byte before a character of several bytes may combine with it.
  if (bytes > 0 && bytes < text.size() && static_cast<uint8_t>(text[bytes]) >= 0x80) --bytes;
  return bytes;
}

Normalizer::Replacement Normalizer::FindRule(std::string_view text) const {
  Replacement longest{{}, 0};
  if (trie_.empty()) return longest;
  uint32_t at = OffsetOf(trie_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    if (!Step(&at, static_cast<uint8_t>(text[i]))) break;
    const uint32_t unit = trie_[at];
    at ^= OffsetOf(unit);
    if (at >= trie_.size()) break;
    const uint32_t form = ValueOf(trie_[at]);
    if (HasLeaf(unit) && form < normal_forms_.size()) longest = {&normal_forms_[form], i + 1};
  }
  return longest;
}

Normalizer::Replacement Normalizer::First(std::string_view text) const {
  size_t symbol = 0;
  if (!user_defined_.empty()) {
    user_defined_.VisitPrefixes(text, [&](size_t length, int32_t) { symbol = length; });
  }
  if (symbol > 0) return {text.substr(0, symbol), symbol};
  if (const Replacement rule = FindRule(text); rule.bytes > 0) return rule;
  if (const auto first = FirstCharacter(text)) return {text.substr(0, first->bytes), first->bytes};
  return {kReplacement, 1};
}

void Normalizer::Normalize(std::string_view text, std::string* normal) const {
  normal->clear();
  // Two bytes tell whether the first is plain.
  while (trims_ && !text.empty() && PlainBytes(text.substr(0, 2)) == 0) {
    const Replacement next = First(text);
    if (next.normal != " ") break;
    text.remove_prefix(next.bytes);
  }
  if (text.empty()) return;
  normal->reserve(text.size() + text.size() / 16 + 2 * kSpaceMark.size());
  if (adds_space_ && !adds_it_behind_) *normal += space_;
  for (bool behind_space = trims_; !text.empty();) {
    if (const size_t plain = PlainBytes(text); plain > 0) {
      *normal += text.substr(0, plain);
      text.remove_prefix(plain);
      behind_space = false;
      continue;
    }
    Replacement next = First(text);
    while (behind_space && next.normal.starts_with(' ')) next.normal.remove_prefix(1);
    for (const char c : next.normal) {
      if (c == ' ') {
        *normal += space_;
      } else {
        *normal += c;
      }
    }
    if (!next.normal.empty()) behind_space = trims_ && next.normal.ends_with(' ');
    text.remove_prefix(next.bytes);
  }
  while (trims_ && normal->ends_with(space_)) normal->resize(normal->size() - space_.size());
  if (adds_space_ && adds_it_behind_) *normal += space_;
}

}  // namespace syntra
