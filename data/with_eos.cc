// SPDX-License-Identifier: Apache-2.0
#include "data/with_eos.h"

#include "base/error.h"
#include "data/tokenizer.h"

namespace syntra {

void CopyWithEos(std::span<const int32_t> ids, int32_t eos, std::span<int32_t> slots) {
  SYNTRA_CHECK(!slots.empty() && slots.size() <= ids.size() + 1, "{} slots for {} ids and EOS",
               slots.size(), ids.size());
  std::ranges::copy(ids.first(slots.size() - 1), slots.begin());
  slots.back() = eos;
}

std::vector<int32_t> IdsWithEos(const Tokenizer& tokenizer, std::string_view text, int64_t room,
                                bool* cut) {
  const std::vector<int32_t> ids = tokenizer.Encode(text);
  if (cut) *cut = IsCutForEos(std::ssize(ids), room);
  std::vector<int32_t> tokens(LengthWithEos(std::ssize(ids), room));
  CopyWithEos(ids, tokenizer.eos_id(), tokens);
  return tokens;
}

}  // namespace syntra
