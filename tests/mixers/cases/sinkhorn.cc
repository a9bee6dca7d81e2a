// SPDX-License-Identifier: Apache-2.0
#include "mixers/mixer_cases.h"

namespace syntra {

MixerRow cases_sinkhorn() {
  const auto sinkhorn = [](const std::string& more) {
    return "sinkhorn { heads: 3 head_size: 4 max_length: 9 " + more + " }";
  };
  return {
      .alone = {{"sinkhorn", sinkhorn("block_size: 3")},
                {"sinkhorn_softmax", sinkhorn("block_size: 2 iterations: 0 temperature: 2")},
                {"sinkhorn_gumbel", sinkhorn("block_size: 3 gumbel_noise: true")}},
      // Besides keys and values it keeps all inputs, which it sorts.
      .in_models = {
          {"sinkhorn", "sinkhorn { heads: 2 head_size: 8 block_size: 2 max_length: 16 }", 3 * 16}}};
}

}  // namespace syntra
