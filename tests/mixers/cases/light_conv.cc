// SPDX-License-Identifier: Apache-2.0
#include "mixers/cases/convolution.h"

namespace syntra {

MixerRow cases_light_conv() { return ConvolutionCases("light_conv", 2); }

}  // namespace syntra
