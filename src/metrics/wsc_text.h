// SPDX-License-Identifier: Apache-2.0
// Whether a text names the referent of a pronoun (wsc_simple in t5/data/postprocessors.py).
#pragma once

#include <string_view>

namespace syntra {

// 1 if `prediction` names `referent`, 0 if it names something else, -1 if it names nothing. Case
// and determiners ("the", "my") do not count. The words of one must all be words of the other, and
// both or neither must have an apostrophe: "Bob" does not name "Bob's hat".
int NamesReferent(std::string_view prediction, std::string_view referent);

}  // namespace syntra
