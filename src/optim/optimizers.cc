// SPDX-License-Identifier: Apache-2.0
#include "optim/optimizers.h"

namespace syntra {

std::unique_ptr<Optimizer> MakeOptimizer(const OptimizerConfig& config,
                                         const ParameterStore& parameters, ElementRange range) {
  switch (config.kind()) {
    case OptimizerConfig::ADAFACTOR:
      return MakeAdafactor(config, parameters, range);
    case OptimizerConfig::ADAMW:
    case OptimizerConfig::ADAMW_RMS:
      return MakeAdamW(config, parameters, range);
  }
  Fail(ExitCode::kConfig, "unknown optimizer");
}

std::unique_ptr<Optimizer> MakeOptimizer(const OptimizerConfig& config,
                                         const ParameterStore& parameters) {
  return MakeOptimizer(config, parameters, {0, parameters.arena_elements()});
}

}  // namespace syntra
