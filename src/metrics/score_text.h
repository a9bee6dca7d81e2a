// SPDX-License-Identifier: Apache-2.0
// The number that a text says, for tasks whose answers are scores.
#pragma once

#include <string_view>

namespace syntra {

// The number, or -1 if `text` is not a number (string_to_float in t5/data/postprocessors.py). It is
// written as Python's float() reads it: white space around it, digits of any script, "_" between
// digits. "inf", "nan" and what a double cannot hold do not count as numbers: they would leave no
// correlation.
double ScoreOfText(std::string_view text);
// True only if no text that begins with this one is a number.
bool BeginsNoScore(std::string_view text);

}  // namespace syntra
