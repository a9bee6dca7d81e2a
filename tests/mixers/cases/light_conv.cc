// SPDX-License-Identifier: Apache-2.0
#include "mixers/mixer_cases.h"

namespace syntra {

MixerRow cases_light_conv() {
  // Filters that reach from one end of the trials' rows to the other.
  return {.alone = {{"light_conv", "light_conv { kernel_size: 13 heads: 5 }"},
                    {"light_conv_even", "light_conv { kernel_size: 14 heads: 2 glu: false }"},
                    {"light_conv_mesh", "light_conv { kernel_size: 13 form: MESH }"},
                    {"light_conv_weight_dropout",
                     "light_conv { kernel_size: 13 heads: 5 weight_dropout: 0.4 }"}},
          // It keeps the inputs that its filter still needs.
          .in_models = {{"light_conv", "light_conv { kernel_size: 5 heads: 2 }", 0, 4 * 16}}};
}

}  // namespace syntra
