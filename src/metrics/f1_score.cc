// SPDX-License-Identifier: Apache-2.0
#include "metrics/f1_score.h"

namespace syntra {

double F1Score(double both, double found, double wanted) {
  return both == 0 ? 0 : 2 * both / (found + wanted);
}

double BinaryF1(std::span<const Judgement> examples) {
  double both = 0, found = 0, wanted = 0;
  for (const Judgement& one : examples) {
    const double predicted = one.predicted == -1 ? 1 - one.expected : one.predicted;
    both += predicted * one.expected;
    found += predicted;
    wanted += one.expected;
  }
  return 100 * F1Score(both, found, wanted);
}

}  // namespace syntra
