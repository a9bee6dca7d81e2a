// SPDX-License-Identifier: Apache-2.0
#include "optim/optimizers.h"

namespace syntra {

std::unique_ptr<Optimizer> MakeOptimizer(const OptimizerConfig& config,
                                         const ParameterStore& parameters,
                                         std::span<const ElementRange> parts) {
  switch (config.kind()) {
    case OptimizerConfig::ADAFACTOR:
      return MakeAdafactor(config, parameters, parts);
    case OptimizerConfig::ADAMW:
    case OptimizerConfig::ADAMW_RMS:
      return MakeAdamW(config, parameters, parts);
  }
  SYNTRA_CHECK(false, "no optimizer is of kind {}", static_cast<int>(config.kind()));
}

std::unique_ptr<Optimizer> MakeOptimizer(const OptimizerConfig& config,
                                         const ParameterStore& parameters) {
  const ElementRange all{0, parameters.arena_elements()};
  return MakeOptimizer(config, parameters, std::span(&all, 1));
}

}  // namespace syntra
