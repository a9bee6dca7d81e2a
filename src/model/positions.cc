// SPDX-License-Identifier: Apache-2.0
#include "model/positions.h"

#include <fmt/format.h>

#include "nn/layers.h"
#include "nn/sinusoids.h"
#include "nn/tensors.h"

namespace syntra {
namespace {

Value Table(const Scope& root, const ModelConfig& model, int64_t length) {
  const PositionConfig& config = model.positions();
  const int64_t width = model.width();
  if (config.has_learned()) {
    return root.Parameter("position_embedding", {config.learned().max_length(), width},
                          Initializer::Normal(1));
  }
  return root.program().Constant({length, width},
                                 SinusoidTable(config.sinusoidal().layout(), length, width));
}

}  // namespace

Value PositionVectors(const Scope& root, const ModelConfig& model, Value positions,
                      int64_t length) {
  return Embed(root, Table(root, model, length), positions);
}

Value PositionVector(const Scope& root, const ModelConfig& model, Value position, int64_t length) {
  const Value table = Table(root, model, length);
  const Value row = GatherRows(root, table, 0, position);
  return Cast(root, row, root.recording().activations);
}

void ValidatePositions(const ModelConfig& model, const FieldReport& report) {
  const std::string path = report.Path("positions"), width = report.Path("width");
  if (model.has_positions() && model.positions().kind_case() == PositionConfig::KIND_NOT_SET) {
    report.Add({path},
               fmt::format("{} names no kind; write e.g. positions {{ sinusoidal {{}} }}", path));
  }
  if (model.positions().has_sinusoidal() && model.width() % 2 != 0) {
    report.Add({width, path}, fmt::format("{} {} is odd, but {}.sinusoidal has a sine and a cosine "
                                          "of each wavelength; make it even",
                                          width, model.width(), path));
  }
}

}  // namespace syntra
