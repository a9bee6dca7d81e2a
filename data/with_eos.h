// SPDX-License-Identifier: Apache-2.0
// The ids of a text followed by EOS, as inputs or targets. If they do not fit, ids are cut so that
// EOS has room (Raffel et al. 2020, section 2.4; append_eos_after_trim of their code).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace syntra {

class Tokenizer;

// How many tokens `ids` ids and EOS take, in `room` tokens at most.
inline int64_t LengthWithEos(int64_t ids, int64_t room) { return std::min(ids + 1, room); }

// Whether some of the ids are then cut.
inline bool IsCutForEos(int64_t ids, int64_t room) { return ids + 1 > room; }

// Writes as many of `ids` as fit, and EOS, to `slots`, which have LengthWithEos.
void CopyWithEos(std::span<const int32_t> ids, int32_t eos, std::span<int32_t> slots);

// The ids of a text and EOS, in `room` tokens at most. `cut`: whether some of its ids are cut.
std::vector<int32_t> IdsWithEos(const Tokenizer& tokenizer, std::string_view text, int64_t room,
                                bool* cut = nullptr);

}  // namespace syntra
