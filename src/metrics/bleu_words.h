// SPDX-License-Identifier: Apache-2.0
// The words of a text by the rules of mteval, which sacrebleu's tokenizers follow.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace syntra {

// mteval-v14, international: punctuation and symbols of any script are words, but for punctuation
// between two numbers. sacrebleu's "intl".
std::vector<std::string> InternationalWords(std::string_view text);

// mteval-v13a: the same for ASCII, by a narrower list. sacrebleu's "13a".
std::vector<std::string> Mteval13aWords(std::string_view text);

}  // namespace syntra
