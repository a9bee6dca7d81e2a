// SPDX-License-Identifier: Apache-2.0
#include "mixers/mixer_cases.h"

namespace syntra {

MixerRow cases_performer() {
  return {
      .alone = {{"performer", "performer { heads: 3 head_size: 4 features: 6 chunk_length: 2 }"},
                {"performer_relu", "performer { heads: 3 head_size: 4 features: 5 kernel: RELU }"}},
      // It keeps sums.
      .in_models = {{"performer",
                     "performer { heads: 2 head_size: 8 features: 16 chunk_length: 4 }", 0,
                     32 * 8 + 32}}};
}

}  // namespace syntra
