// SPDX-License-Identifier: Apache-2.0
#include "metrics/average.h"

#include <cmath>

#include "base/error.h"

namespace syntra {

double BenchmarkAverage(std::span<const NamedValues> tasks) {
  std::vector<double> means;
  for (const NamedValues& task : tasks) {
    std::vector<double> values;
    for (const NamedValue& value : task) values.push_back(value.value);
    means.push_back(SpreadOf(values).mean);
  }
  return SpreadOf(means).mean;
}

Spread SpreadOf(std::span<const double> values) {
  SYNTRA_CHECK(!values.empty(), "the mean of nothing");
  const double count = static_cast<double>(values.size());
  Spread spread;
  for (const double value : values) spread.mean += value / count;
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  if (values.size() > 1) spread.deviation = std::sqrt(squares / (count - 1));
  return spread;
}

}  // namespace syntra
