// SPDX-License-Identifier: Apache-2.0
#include "mixers/mixer_cases.h"

namespace syntra {

MixerRow cases_linformer() {
  const std::string five = "linformer { heads: 3 head_size: 4 projected_length: 5 max_length: 9 ";
  return {
      .alone = {{"linformer", five + "}"},
                {"linformer_own_heads_shared_values",
                 five + "share_heads: false share_values: true }"}},
      .in_models = {
          {"linformer", "linformer { heads: 2 head_size: 8 projected_length: 8 max_length: 16 }"}}};
}

}  // namespace syntra
