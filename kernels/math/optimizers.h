// SPDX-License-Identifier: Apache-2.0
// The numbers in the updates of optimizers that all backends compute alike (formulas:
// kernels/ops/adafactor.cc, adamw.cc). `hyper` are the hyperparameters by slot.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/host_device.h"
#include "kernels/attributes.h"
#include "kernels/math/hyperparameters.h"

namespace syntra {

SYNTRA_HOST_DEVICE inline bool ChangesAnything(const float* hyper) {
  return std::isfinite(hyper[hyper::kGradientScale]);
}

// By how much an update relative to its parameter is scaled: the parameter's root mean square, or
// the least that counts (Shazeer and Stern 2018, section 8: epsilon 2; nanoT5's AdamW has the
// same).
SYNTRA_HOST_DEVICE inline double ParameterScale(double root_mean_square) {
  constexpr double kLeast = 1e-3;
  return root_mean_square < kLeast ? kLeast : root_mean_square;
}

// Is added to each squared gradient (Shazeer and Stern 2018, section 8: epsilon 1).
inline constexpr double kAdafactorSquareFloor = 1e-30;

// The step of p -= step * x: the learning rate times the parameter's scale, after clipping. From
// the sums of x^2 and p^2 over `count` elements.
SYNTRA_HOST_DEVICE inline float AdafactorStep(const float* hyper, double clip_threshold,
                                              double x_squares, double p_squares, int64_t count) {
  const auto size = static_cast<double>(count);
  const double excess = std::sqrt(x_squares / size) / clip_threshold;
  const double clip = excess > 1.0 ? excess : 1.0;
  return static_cast<float>(hyper[hyper::kRate] * ParameterScale(std::sqrt(p_squares / size)) /
                            clip);
}

// The attributes of adamw in floats.
struct AdamwConstants {
  float beta1, one_minus_beta1, beta2, one_minus_beta2, epsilon;

  static AdamwConstants Of(const Attributes& attributes) {
    const double beta1 = attributes.Number("beta1"), beta2 = attributes.Number("beta2");
    return {static_cast<float>(beta1), static_cast<float>(1.0 - beta1), static_cast<float>(beta2),
            static_cast<float>(1.0 - beta2), static_cast<float>(attributes.Number("epsilon"))};
  }
};

// p = p * keep_before - step * m / (sqrt(v * v_scale) + epsilon), then p *= keep_after.
struct AdamwFactors {
  float gradient_scale, step, v_scale, keep_before, keep_after;

  // As in torch.
  SYNTRA_HOST_DEVICE static AdamwFactors Plain(const float* hyper) {
    return {hyper[hyper::kGradientScale],
            static_cast<float>(double{hyper[hyper::kRate]} / hyper[hyper::kBias1]),
            static_cast<float>(1.0 / hyper[hyper::kBias2]), Kept(hyper), 1.0f};
  }
  // As in nanoT5: the step is relative to the parameter.
  SYNTRA_HOST_DEVICE static AdamwFactors Scaled(const float* hyper, double root_mean_square) {
    const double step = hyper[hyper::kRate] * ParameterScale(root_mean_square) *
                        std::sqrt(double{hyper[hyper::kBias2]}) / hyper[hyper::kBias1];
    return {hyper[hyper::kGradientScale], static_cast<float>(step), 1.0f, 1.0f, Kept(hyper)};
  }

 private:
  // What weight decay leaves of a parameter.
  SYNTRA_HOST_DEVICE static float Kept(const float* hyper) {
    return static_cast<float>(1.0 - double{hyper[hyper::kRate]} * hyper[hyper::kWeightDecay]);
  }
};

}  // namespace syntra
