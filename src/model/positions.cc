// SPDX-License-Identifier: Apache-2.0
#include "model/positions.h"

#include <fmt/format.h>

#include "nn/layers.h"
#include "nn/sinusoids.h"
#include "nn/tensors.h"

namespace syntra {
namespace {

Value Table(const Scope& root, const PositionConfig& config, int64_t length, int64_t width) {
  if (config.has_learned()) {
    return root.Parameter("position_embedding", {config.learned().max_length(), width},
                          {"positions", "embed"}, Initializer::Normal(1));
  }
  return root.program().Constant({length, width},
                                 SinusoidTable(config.sinusoidal().layout(), length, width));
}

}  // namespace

Value AddPositions(const Scope& root, const PositionConfig& config, Value embedded, Value positions,
                   int64_t length) {
  const Value table = Table(root, config, length, root.TypeOf(embedded).shape[-1]);
  return Add(root, embedded, Embed(root, table, positions));
}

Value AddPosition(const Scope& root, const PositionConfig& config, Value embedded, Value position,
                  int64_t length) {
  const TensorType type = root.TypeOf(embedded);
  const Value table = Table(root, config, length, type.shape[-1]);
  const Value row = root.One("gather_rows", {{"axis", int64_t{0}}}, {table, position});
  const Value narrow = root.One("copy", {{"dtype", std::string(NameOf(type.dtype))}}, {row});
  return Add(root, embedded, narrow);
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
