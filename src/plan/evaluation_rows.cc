// SPDX-License-Identifier: Apache-2.0
#include "plan/evaluation_rows.h"

namespace syntra {

int64_t EvaluationBatchRows(const Config& config) {
  const int64_t rows = config.evaluation().batch_size();
  return rows > 0 ? rows : config.train().batch_size();
}

std::vector<int64_t> EvaluationPieces(const Config& config) {
  const int64_t batch = EvaluationBatchRows(config);
  std::vector<int64_t> rows;
  if (batch >= kPieceRows) rows.push_back(kPieceRows);
  if (batch % kPieceRows != 0) rows.push_back(batch % kPieceRows);
  return rows;
}

}  // namespace syntra
