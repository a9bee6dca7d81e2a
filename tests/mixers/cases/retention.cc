// SPDX-License-Identifier: Apache-2.0
#include "mixers/mixer_cases.h"

namespace syntra {

MixerRow cases_retention() {
  // Powers of the decay are rounded to float: each by itself, or step by step.
  const auto retention = [](const std::string& name, const std::string& fields) {
    return MixerCase{.name = name,
                     .text = "retention { heads: 3 head_size: 4 " + fields + " }",
                     .rounding = 1e-7};
  };
  return {.alone = {retention("retention", "value_size: 6 chunk_length: 3"),
                    retention("retention_one_chunk", "value_size: 5"),
                    retention("retention_step_by_step", "value_size: 8 chunk_length: 1")},
          // It keeps sums.
          .in_models = {{"retention",
                         "retention { heads: 2 head_size: 8 value_size: 12 chunk_length: 4 }", 0,
                         16 * 12}}};
}

}  // namespace syntra
