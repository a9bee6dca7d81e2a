// SPDX-License-Identifier: Apache-2.0
#include "data/example.h"

#include "configs/schema/config.pb.h"
#include "core/corruption_lengths.h"

namespace syntra {

bool IsLanguageModelling(const DataConfig& config) {
  return config.task_size() == 0 && config.objective() != DataConfig::SPAN_CORRUPTION;
}

ExampleLengths RowLengths(const DataConfig& config) {
  const int64_t inputs = config.input_length();
  if (IsLanguageModelling(config)) return {0, inputs};
  if (config.target_length() > 0) return {inputs, config.target_length()};
  return {inputs, LengthsFor(inputs, config.noise_density(), config.mean_span_length()).targets};
}

}  // namespace syntra
