// SPDX-License-Identifier: Apache-2.0
#include "train/rounded_parameters.h"

#include "kernels/op.h"

namespace syntra {

RoundedParameters::RoundedParameters(Backend& backend, int64_t elements)
    : backend_(backend),
      copies_(backend.device().Allocate(elements * sizeof(BFloat16), "parameters in bf16")) {}

void RoundedParameters::Refresh(const TensorView& parameters, int64_t first) {
  BoundKernel& round = kernels_[parameters.type.shape.size()];
  if (!round.run) {
    const TensorType rounded{DType::kBF16, parameters.type.shape};
    const OpCall call{{{"dtype", "bf16"}}, {parameters.type}, {rounded}, {false}};
    round = backend_.Bind(GetOp("copy"), call).value();
  }
  void* to = reinterpret_cast<BFloat16*>(copies_.data()) + first;
  round.run({{&parameters.data, 1}, {&to, 1}, nullptr, backend_.device().stream()});
}

}  // namespace syntra
