// SPDX-License-Identifier: Apache-2.0
#include "mixers/mixer_cases.h"

namespace syntra {

MixerRow cases_reformer() {
  const auto reformer = [](const std::string& more) {
    return "reformer { heads: 3 head_size: 4 " + more + " }";
  };
  return {
      .alone = {{.name = "reformer",
                 .text = reformer("chunk_length: 3 buckets: 2 rounds: 3"),
                 .sorts = true},
                {.name = "reformer_one_chunk",
                 .text = reformer("chunk_length: 9 buckets: 4 rounds: 1"),
                 .sorts = true,
                 .any_place = true}},
      // Besides keys and values it keeps the buckets.
      .in_models = {{"reformer", "reformer { heads: 2 head_size: 8 chunk_length: 4 buckets: 4 }",
                     2 * 16 + 4}}};
}

}  // namespace syntra
