// SPDX-License-Identifier: Apache-2.0
// Matthews' correlation of labels, for any number of classes (Gorodkin 2004, R_K; scikit-learn's
// matthews_corrcoef). Texts that are no label are a class of their own. It is 0 where all
// predictions, or all expectations, are of one class.
#include <cmath>
#include <map>

#include "metrics/metric.h"

namespace syntra {
namespace {

struct ClassCounts {
  double found = 0, wanted = 0;
};

std::vector<double> Matthews(std::span<const Judgement> examples, int) {
  std::map<double, ClassCounts> classes;
  double right = 0;
  for (const Judgement& one : examples) {
    right += one.predicted == one.expected;
    ++classes[one.predicted].found;
    ++classes[one.expected].wanted;
  }
  const double count = static_cast<double>(examples.size());
  // Covariances, times count^2.
  double both = right * count, found = count * count, wanted = count * count;
  for (const auto& [label, counts] : classes) {
    both -= counts.found * counts.wanted;
    found -= counts.found * counts.found;
    wanted -= counts.wanted * counts.wanted;
  }
  if (found == 0 || wanted == 0) return {0.0};
  return {100 * both / std::sqrt(found * wanted)};
}

}  // namespace

Metric metric_matthews() {
  return {.reads = Metric::Reads::kLabels, .values = {"matthews"}, .compute = Matthews};
}

}  // namespace syntra
