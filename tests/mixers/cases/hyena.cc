// SPDX-License-Identifier: Apache-2.0
#include "mixers/mixer_cases.h"

namespace syntra {

MixerRow cases_hyena() {
  return {.alone = {{"hyena", "hyena { max_length: 9 filter_width: 4 bands: 2 }"},
                    {"hyena_order_3",
                     "hyena { max_length: 9 order: 3 kernel_size: 2 filter_width: 4 bands: 0 }"}},
          // The long convolution reads all positions before, the short ones two.
          .in_models = {{"hyena",
                         "hyena { max_length: 16 filter_width: 8 bands: 3 filter_frequency: 1 }",
                         16, 2 * 48 - 16}}};
}

}  // namespace syntra
