// SPDX-License-Identifier: Apache-2.0
#include "mixers/mixer_cases.h"

namespace syntra {

MixerRow cases_fourier() {
  return {.alone = {{"fourier", "fourier { max_length: 9 }"},
                    {"fourier_orthonormal", "fourier { max_length: 9 orthonormal: true }"}},
          .in_models = {{"fourier", "fourier { max_length: 16 orthonormal: true }"}}};
}

}  // namespace syntra
