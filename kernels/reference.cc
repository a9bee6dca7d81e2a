// SPDX-License-Identifier: Apache-2.0
// Runs an op's double-precision reference on host tensors of the call's types.
#include <algorithm>
#include <memory>

#include "kernels/bfloat16.h"
#include "kernels/bound_kernel.h"
#include "kernels/op.h"

namespace syntra {
namespace {

// Copies of one call's floating-point operands as doubles, and views of all operands. Allocated
// before the first run.
struct Scratch {
  std::vector<std::vector<double>> inputs, outputs;
  std::vector<ReferenceTensor> input_views, output_views;
};

std::vector<std::vector<double>> Copies(const std::vector<TensorType>& types) {
  std::vector<std::vector<double>> copies(types.size());
  for (size_t i = 0; i < types.size(); ++i) {
    if (IsFloat(types[i].dtype)) copies[i].resize(types[i].shape.size());
  }
  return copies;
}

// Calls body(i, place) for every element of a tensor: its number, and where it is in memory.
template <typename Body>
void ForElements(const TensorType& type, const Body& body) {
  int64_t number = 0;
  type.ForEachRun([&](int64_t place, int64_t count) {
    for (int64_t i = 0; i < count; ++i) body(number++, place + i);
  });
}

void ToDouble(const TensorType& type, const void* from, std::vector<double>& to) {
  to.resize(type.shape.size());
  ForElements(type, [&](int64_t i, int64_t place) {
    switch (type.dtype) {
      case DType::kF32:
        to[i] = static_cast<const float*>(from)[place];
        break;
      case DType::kBF16:
        to[i] = ToFloat(static_cast<const BFloat16*>(from)[place]);
        break;
      case DType::kF64:
        to[i] = static_cast<const double*>(from)[place];
        break;
      default:
        break;
    }
  });
}

void FromDouble(const TensorType& type, const std::vector<double>& from, void* to) {
  ForElements(type, [&](int64_t i, int64_t place) {
    switch (type.dtype) {
      case DType::kF32:
        static_cast<float*>(to)[place] = static_cast<float>(from[i]);
        break;
      case DType::kBF16:
        static_cast<BFloat16*>(to)[place] = ToBFloat16(static_cast<float>(from[i]));
        break;
      case DType::kF64:
        static_cast<double*>(to)[place] = from[i];
        break;
      default:
        break;
    }
  });
}

ReferenceTensor Wrap(const TensorType& type, void* data, std::vector<double>& numbers) {
  if (!type.present()) return {type, {}, {}};
  if (IsFloat(type.dtype)) return {type, numbers, {}};
  return {type, {}, {static_cast<int32_t*>(data), static_cast<size_t>(type.shape.size())}};
}

}  // namespace

BoundKernel BindReferenceOnHost(const Op& op, const OpCall& call) {
  auto scratch = std::make_shared<Scratch>();
  scratch->inputs = Copies(call.inputs);
  scratch->outputs = Copies(call.outputs);
  scratch->input_views.resize(call.inputs.size());
  scratch->output_views.resize(call.outputs.size());
  BoundKernel kernel;
  kernel.run = [call, scratch, reference = op.reference,
                updates = op.updates](const KernelArguments& arguments) {
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const TensorType& type = call.inputs[i];
      if (IsFloat(type.dtype)) ToDouble(type, arguments.inputs[i], scratch->inputs[i]);
      scratch->input_views[i] = Wrap(type, arguments.inputs[i], scratch->inputs[i]);
    }
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      const TensorType& type = call.outputs[i];
      std::vector<double>& numbers = scratch->outputs[i];
      if (IsFloat(type.dtype)) {
        if (updates) {
          ToDouble(type, arguments.outputs[i], numbers);
        } else {
          numbers.assign(type.shape.size(), 0.0);
        }
      }
      scratch->output_views[i] = Wrap(type, arguments.outputs[i], numbers);
      if (!updates) std::ranges::fill(scratch->output_views[i].integers, 0);
    }
    reference(call, scratch->input_views, scratch->output_views);
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      if (IsFloat(call.outputs[i].dtype)) {
        FromDouble(call.outputs[i], scratch->outputs[i], arguments.outputs[i]);
      }
    }
  };
  return kernel;
}

}  // namespace syntra
