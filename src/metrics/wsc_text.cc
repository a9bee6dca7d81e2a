// SPDX-License-Identifier: Apache-2.0
#include "metrics/wsc_text.h"

#include <algorithm>
#include <set>
#include <string>

#include "base/text.h"
#include "metrics/unicode_text.h"

namespace syntra {
namespace {

const std::set<std::string, std::less<>> kDeterminers = {
    "a",    "an",   "few", "her",   "his",   "each", "every", "many",  "much",  "my",  "our",
    "some", "that", "the", "their", "these", "this", "those", "which", "whose", "your"};

std::string Cleaned(std::string_view text) {
  std::vector<std::string> words = Split(LowerCase(StripUnicodeSpace(text)), ' ');
  std::erase_if(words, [](const std::string& word) { return kDeterminers.contains(word); });
  return Join(words, " ");
}

// Parted at every single space, so that two in a row hold an empty word, as in T5.
std::set<std::string> DistinctWords(const std::string& cleaned) {
  const std::vector<std::string> words = Split(cleaned, ' ');
  return {words.begin(), words.end()};
}

}  // namespace

int NamesReferent(std::string_view prediction, std::string_view referent) {
  const std::string named = Cleaned(prediction), wanted = Cleaned(referent);
  if (named.empty()) return -1;
  const auto has_apostrophe = [](const std::string& text) {
    return text.find('\'') != std::string::npos;
  };
  if (has_apostrophe(named) != has_apostrophe(wanted)) return 0;
  const std::set<std::string> ours = DistinctWords(named), theirs = DistinctWords(wanted);
  return std::ranges::includes(ours, theirs) || std::ranges::includes(theirs, ours);
}

}  // namespace syntra
