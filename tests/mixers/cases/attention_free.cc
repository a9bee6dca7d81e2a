// SPDX-License-Identifier: Apache-2.0
#include "mixers/mixer_cases.h"

namespace syntra {

MixerRow cases_attention_free() {
  return {
      .alone = {{"attention_free", "attention_free { width: 12 max_length: 9 }"},
                {"attention_free_local",
                 "attention_free { width: 12 max_length: 9 window: 2 rank: 3 }"},
                {"attention_free_simple", "attention_free { width: 12 max_length: 9 window: 0 }"}},
      .in_models = {
          {"attention_free", "attention_free { width: 16 max_length: 16 window: 4 rank: 3 }", 32}}};
}

}  // namespace syntra
