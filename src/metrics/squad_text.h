// SPDX-License-Identifier: Apache-2.0
// Answers as the SQuAD evaluation script compares them (Rajpurkar et al. 2016; normalize_squad in
// t5/evaluation/qa_utils.py).
#pragma once

#include <string>
#include <string_view>

namespace syntra {

// `answer` in lower case, without ASCII punctuation, without the words "a", "an" and "the", its
// words parted by single spaces. Punctuation goes without leaving a space: "o'clock" is "oclock".
// Punctuation beyond ASCII stays.
std::string NormalizeSquad(std::string_view answer);

}  // namespace syntra
