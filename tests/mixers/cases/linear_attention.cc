// SPDX-License-Identifier: Apache-2.0
#include "mixers/mixer_cases.h"

namespace syntra {

MixerRow cases_linear_attention() {
  // Pieces of chunks, and a chunk that is longer than the trials' rows.
  return {
      .alone = {{"linear_attention", "linear_attention { heads: 3 head_size: 4 chunk_length: 3 }"},
                {"linear_attention_one_chunk", "linear_attention { heads: 3 head_size: 4 }"}},
      // It keeps sums.
      .in_models = {{"linear_attention",
                     "linear_attention { heads: 2 head_size: 8 chunk_length: 4 }", 0,
                     16 * 8 + 16}}};
}

}  // namespace syntra
