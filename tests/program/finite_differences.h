// SPDX-License-Identifier: Apache-2.0
// Compares the gradients that a program computes with central differences of its output "loss".
#pragma once

#include <gtest/gtest.h>

#include "program/arena_memory.h"
#include "program/numbers.h"

namespace syntra {

// The largest error of any parameter's gradient along random directions, relative to the norm of
// the gradient. `executable` must run on the reference backend. The parameters are restored.
inline double GradientDisagreement(Executable& executable, ArenaMemory& memory,
                                   const ParameterStore& parameters, std::string* where = nullptr) {
  constexpr double kStep = 1e-5;
  constexpr int kDirections = 3;
  memory.ClearGradients();
  executable.RunChecked();
  std::map<std::string, std::vector<double>> gradients;
  for (const Parameter& p : parameters.all()) gradients[p.name] = memory.Gradient(p);
  double worst = 0;
  for (const Parameter& parameter : parameters.all()) {
    if (!parameter.trainable) continue;
    const std::vector<double> start = memory.ParameterValues(parameter);
    const std::vector<double>& gradient = gradients[parameter.name];
    for (uint64_t n = 0; n < kDirections; ++n) {
      const std::vector<float> direction =
          NormalNumbers(parameter.name, static_cast<int64_t>(start.size()), 1, 1000 + n);
      const auto loss = [&](double step) {
        std::vector<double> moved = start;
        for (size_t k = 0; k < moved.size(); ++k) moved[k] += step * direction[k];
        memory.SetParameter(parameter, moved);
        executable.Run();
        return executable.Scalar("loss");
      };
      const double slope =
          (8 * (loss(kStep) - loss(-kStep)) - (loss(2 * kStep) - loss(-2 * kStep))) / (12 * kStep);
      double predicted = 0;
      for (size_t k = 0; k < gradient.size(); ++k) predicted += gradient[k] * direction[k];
      const double off = std::abs(slope - predicted) / std::max(Norm(gradient), 1e-3);
      if (off > worst && where) *where = parameter.name;
      worst = std::max(worst, off);
    }
    memory.SetParameter(parameter, start);
  }
  return worst;
}

inline void ExpectGradients(Executable& executable, ArenaMemory& memory,
                            const ParameterStore& parameters) {
  std::string where;
  EXPECT_LT(GradientDisagreement(executable, memory, parameters, &where), 1e-6) << where;
}

}  // namespace syntra
