// SPDX-License-Identifier: Apache-2.0
// The optimizers behind MakeOptimizer. To add one: a file beside adamw.cc, a line here and in
// optimizers.cc.
#pragma once

#include "optim/optimizer.h"

namespace syntra {

std::unique_ptr<Optimizer> MakeAdamW(const OptimizerConfig&, const ParameterStore&);
std::unique_ptr<Optimizer> MakeAdafactor(const OptimizerConfig&, const ParameterStore&);

}  // namespace syntra
