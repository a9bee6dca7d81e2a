// Makes one op call ready to run on a backend.
#pragma once

#include "program/executable.h"

namespace syntra {

// Whatever the backend's kernel can do itself, the result honours OpCall::accumulate.
BoundKernel BindKernel(const Op& op, const OpCall& call, Backend backend);

// The type a value has on the backend: kReference holds floating-point tensors as f64.
TensorType BackendType(const TensorType& type, Backend backend);

}  // namespace syntra
