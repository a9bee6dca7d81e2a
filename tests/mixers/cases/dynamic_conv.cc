// SPDX-License-Identifier: Apache-2.0
#include "mixers/cases/convolution.h"

namespace syntra {

MixerRow cases_dynamic_conv() { return ConvolutionCases("dynamic_conv", 4); }

}  // namespace syntra
