// SPDX-License-Identifier: Apache-2.0
#include "mixers/mixer_cases.h"

namespace syntra {

MixerRow cases_mlp() {
  return {.alone = {{"mlp", "mlp { width: 6 max_length: 9 }"}},
          .in_models = {{"mlp", "mlp { width: 12 max_length: 16 }"}}};
}

}  // namespace syntra
