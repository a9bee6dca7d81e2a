// SPDX-License-Identifier: Apache-2.0
#include "mixers/mixer_cases.h"

namespace syntra {

MixerRow cases_dynamic_conv() {
  // Filters that reach from one end of the trials' rows to the other.
  return {.alone = {{"dynamic_conv", "dynamic_conv { kernel_size: 13 heads: 5 }"},
                    {"dynamic_conv_even", "dynamic_conv { kernel_size: 14 heads: 2 glu: false }"},
                    {"dynamic_conv_mesh", "dynamic_conv { kernel_size: 13 form: MESH }"},
                    {"dynamic_conv_weight_dropout",
                     "dynamic_conv { kernel_size: 13 heads: 5 weight_dropout: 0.4 }"}},
          // It keeps the inputs that its filter still needs.
          .in_models = {{"dynamic_conv", "dynamic_conv { kernel_size: 5 heads: 4 }", 0, 4 * 16}}};
}

}  // namespace syntra
