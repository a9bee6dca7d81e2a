// SPDX-License-Identifier: Apache-2.0
// depthwise_conv with filters of many taps (DepthwiseCall::is_long): products of Fourier
// transforms.
#pragma once

#include "kernels/bound_kernel.h"

namespace syntra {

BoundKernel BindLongConvolution(const OpCall& call);
BoundKernel BindLongConvolutionGrad(const OpCall& call);

}  // namespace syntra
