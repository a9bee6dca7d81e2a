// SPDX-License-Identifier: Apache-2.0
#include "mixers/mixer_cases.h"

namespace syntra {

MixerRow cases_gated_mlp() {
  return {.alone = {{"gated_mlp", "gated_mlp { width: 12 max_length: 9 }"},
                    {"gated_mlp_heads_and_attention",
                     "gated_mlp { width: 12 heads: 3 max_length: 9 attention_size: 4 }"}},
          // It keeps half of its width, and keys and values of the tiny attention.
          .in_models = {{"gated_mlp",
                         "gated_mlp { width: 24 heads: 2 max_length: 16 attention_size: 8 }",
                         12 + 8 + 8}}};
}

}  // namespace syntra
