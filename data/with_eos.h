// SPDX-License-Identifier: Apache-2.0
// Texts as inputs and targets: their ids and EOS, which has room even if ids are left out for it
// (Raffel et al. 2020, section 2.4; append_eos_after_trim of their code).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace syntra {

class Tokenizer;

// The tokens that `ids` ids and EOS become in `room` tokens.
inline int64_t LengthWithEos(int64_t ids, int64_t room) { return std::min(ids + 1, room); }

// Whether some of the ids are left out there.
inline bool IsCutForEos(int64_t ids, int64_t room) { return ids + 1 > room; }

// Writes the first of `ids` and EOS to `slots`, which have LengthWithEos.
void CopyWithEos(std::span<const int32_t> ids, int32_t eos, std::span<int32_t> slots);

// The tokens of a text in `room` tokens. `cut`: whether some of its ids are left out.
std::vector<int32_t> IdsWithEos(const Tokenizer& tokenizer, std::string_view text, int64_t room,
                                bool* cut = nullptr);

}  // namespace syntra
