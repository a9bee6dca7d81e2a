// SPDX-License-Identifier: Apache-2.0
// The cases that convolutions have in common.
#pragma once

#include <string>

#include "mixers/mixer_cases.h"

namespace syntra {

inline MixerRow ConvolutionCases(const std::string& kind, int heads) {
  // Filters that reach from one end of the trials' rows to the other.
  return {.alone = {{kind, kind + " { kernel_size: 13 heads: 5 }"},
                    {kind + "_even", kind + " { kernel_size: 14 heads: 2 glu: false }"},
                    {kind + "_mesh", kind + " { kernel_size: 13 form: MESH }"},
                    {kind + "_weight_dropout",
                     kind + " { kernel_size: 13 heads: 5 weight_dropout: 0.4 }"}},
          // It keeps the inputs that its filter still needs.
          .in_models = {{kind, kind + " { kernel_size: 5 heads: " + std::to_string(heads) + " }", 0,
                         4 * 16}}};
}

}  // namespace syntra
