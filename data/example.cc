// SPDX-License-Identifier: Apache-2.0
#include "data/example.h"

#include "configs/schema/config.pb.h"
#include "core/corruption_lengths.h"

namespace syntra {

bool HasTasks(const DataConfig& config) { return config.task_size() > 0; }

bool IsLanguageModelling(const DataConfig& config) {
  if (HasTasks(config)) return false;
  return config.objective() == DataConfig::CAUSAL_LM || config.objective() == DataConfig::PREFIX_LM;
}

ExampleLengths RowLengths(const DataConfig& config) {
  const int64_t inputs = config.input_length();
  if (IsLanguageModelling(config)) return {0, inputs};
  const bool masks = !HasTasks(config) && config.objective() == DataConfig::MASKED_LM;
  if (masks) return {inputs, inputs};
  if (config.target_length() > 0) return {inputs, config.target_length()};
  return {inputs, LengthsFor(inputs, config.noise_density(), config.mean_span_length()).targets};
}

}  // namespace syntra
