// SPDX-License-Identifier: Apache-2.0
#include "mixers/mixer_cases.h"

namespace syntra {

MixerRow cases_big_bird() {
  const auto big_bird = [](const std::string& more) {
    return "big_bird { heads: 3 head_size: 4 max_length: 9 " + more + " }";
  };
  return {
      .alone = {{.name = "big_bird", .text = big_bird("block_size: 2"), .any_place = true},
                {"big_bird_random", big_bird("block_size: 1 random_blocks: 1")},
                {.name = "big_bird_with_bias",
                 .text = big_bird("block_size: 2 relative_bias: true"),
                 .any_place = true},
                {.name = "big_bird_one_block", .text = big_bird(""), .any_place = true}},
      .in_models = {
          {"big_bird",
           "big_bird { heads: 2 head_size: 8 block_size: 1 random_blocks: 2 max_length: 16 }"}}};
}

}  // namespace syntra
