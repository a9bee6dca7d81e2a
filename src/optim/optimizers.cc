// SPDX-License-Identifier: Apache-2.0
#include "optim/optimizers.h"

namespace syntra {

std::unique_ptr<Optimizer> MakeOptimizer(const OptimizerConfig& config,
                                         const ParameterStore& parameters) {
  switch (config.kind()) {
    case OptimizerConfig::ADAFACTOR:
      return MakeAdafactor(config, parameters);
    case OptimizerConfig::ADAMW:
    case OptimizerConfig::ADAMW_RMS:
      return MakeAdamW(config, parameters);
  }
  Fail(ExitCode::kConfig, "unknown optimizer");
}

}  // namespace syntra
