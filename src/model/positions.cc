// SPDX-License-Identifier: Apache-2.0
#include "model/positions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nn/layers.h"
#include "nn/tensors.h"

namespace syntra {
namespace {

// Where a column of the table lies among its sinusoids.
struct Column {
  int64_t frequency;  // from the fastest on
  bool is_cosine;
};

Column ColumnOf(SinusoidalPositions::Layout layout, int64_t column, int64_t frequencies) {
  if (layout == SinusoidalPositions::INTERLEAVED) return {column / 2, column % 2 == 1};
  return {column % frequencies, column >= frequencies};
}

Value Table(const Scope& root, const PositionConfig& config, int64_t length, int64_t width) {
  if (config.has_learned()) {
    return root.Parameter("position_embedding", {config.learned().max_length(), width},
                          {"positions", "embed"}, Initializer::Normal(1));
  }
  return root.program().Constant({length, width},
                                 SinusoidTable(config.sinusoidal().layout(), length, width));
}

}  // namespace

std::vector<float> SinusoidTable(SinusoidalPositions::Layout layout, int64_t length,
                                 int64_t width) {
  const int64_t frequencies = width / 2;
  // The wavelengths grow from 2 pi, by Tensor2Tensor's rule up to 10000 * 2 pi.
  const int64_t intervals = layout == SinusoidalPositions::INTERLEAVED
                                ? frequencies
                                : std::max<int64_t>(frequencies - 1, 1);
  std::vector<float> table(length * width);
  for (int64_t i = 0; i < length * width; ++i) {
    const Column column = ColumnOf(layout, i % width, frequencies);
    const double exponent = static_cast<double>(column.frequency) / static_cast<double>(intervals);
    const double angle = static_cast<double>(i / width) * std::pow(10000.0, -exponent);
    table[i] = static_cast<float>(column.is_cosine ? std::cos(angle) : std::sin(angle));
  }
  return table;
}

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
