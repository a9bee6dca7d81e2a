// SPDX-License-Identifier: Apache-2.0
// F1 of class 1 of two, such as "equivalent" of MRPC.
#include "metrics/f1_score.h"

namespace syntra {

Metric metric_f1() {
  return {.reads = Metric::Reads::kLabels,
          .values = {"f1"},
          .compute = [](std::span<const Judgement> examples, int) -> std::vector<double> {
            return {BinaryF1(examples)};
          },
          .classes = 2};
}

}  // namespace syntra
