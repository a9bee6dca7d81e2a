// SPDX-License-Identifier: Apache-2.0
#include "mixers/terms/tables.h"

#include <algorithm>
#include <cmath>

#include "nn/tensors.h"

namespace syntra {
namespace {

// Half the width of TensorFlow's Glorot-uniform interval for a 3-D shape: leading extents are a
// receptive field that multiplies both fans.
double Glorot3d(const Shape& shape) {
  return std::sqrt(6.0 / static_cast<double>(shape[0] * (shape[1] + shape[2])));
}

// The top-left block of a table.
Value TopLeft(const Scope& scope, Value table, int64_t length) {
  return First(scope, First(scope, table, 1, length), 2, length);
}

}  // namespace

Initializer TableInitializer(TableInitialization kind, double deviation, const Shape& stored,
                             int64_t rows, int64_t columns) {
  switch (kind) {
    case GLOROT_2D:
      return Initializer::GlorotUniform(rows, columns);
    case NORMAL:
      return Initializer::Normal(deviation);
    case GLOROT_3D:
      break;
  }
  return Initializer::Uniform(Glorot3d(stored));
}

void AddTable(const Scope& scope, Value table, AttentionOperands& operands) {
  if (!operands.table) {
    operands.table = table;
    return;
  }
  const int64_t length =
      std::min(scope.TypeOf(operands.table).shape[-1], scope.TypeOf(table).shape[-1]);
  operands.table =
      Add(scope, TopLeft(scope, operands.table, length), TopLeft(scope, table, length));
}

}  // namespace syntra
