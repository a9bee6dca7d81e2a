// SPDX-License-Identifier: Apache-2.0
#include "mixers/mixer_cases.h"

namespace syntra {

MixerRow cases_local_attention() {
  // Blocks are shorter than the trials' rows.
  const auto local = [](const std::string& more) {
    return "local_attention { heads: 3 head_size: 4 " + more + " }";
  };
  return {
      .alone = {{.name = "local_attention", .text = local("radius: 3"), .reach = 2},
                {.name = "local_attention_without_bias",
                 .text = local("radius: 2 relative_bias: false"),
                 .reach = 1},
                {.name = "local_attention_dilated",
                 .text = local("radius: 2 dilation: 3"),
                 .reach = 3},
                {"local_attention_of_all", local("radius: 128")},
                {"local_attention_and_global", local("radius: 2 global_tokens: 2")},
                {"local_attention_and_global_dilated",
                 local("radius: 2 dilation: 4 global_tokens: 1 relative_bias: false")},
                {.name = "local_attention_all_global",
                 .text = local("global_tokens: 9"),
                 .any_place = true},
                {"local_attention_global_projections",
                 local("radius: 2 global_tokens: 4 global_projections: true")}},
      .in_models = {{"local_attention",
                     "local_attention { heads: 2 head_size: 8 radius: 2 dilation: 2 }", 32},
                    {"local_attention_and_global",
                     "local_attention { heads: 2 head_size: 8 radius: 3 global_tokens: 2 }", 32}}};
}

}  // namespace syntra
