// SPDX-License-Identifier: Apache-2.0
// FNet (Lee-Thorp et al. 2021, equation 3): the real part of a discrete Fourier transform over
// positions and columns, y = C_N x C_D - S_N x S_D with C and S the cosines and sines of its
// angles.
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "mixers/mixer.h"
#include "nn/tensors.h"

namespace syntra {
namespace {

enum class Wave { kCosine, kSine };

// factor * cos or sin (2 pi j k / period) for j, k < size: the corner of a transform's matrix.
Value Waves(const Scope& scope, Wave wave, int64_t size, int64_t period, double factor) {
  std::vector<float> matrix(size * size);
  for (int64_t j = 0; j < size; ++j) {
    for (int64_t k = 0; k < size; ++k) {
      // A whole number of turns is left out, so that large angles are as exact as small ones.
      const double angle =
          2 * std::numbers::pi * static_cast<double>(j * k % period) / static_cast<double>(period);
      const double value = wave == Wave::kCosine ? std::cos(angle) : std::sin(angle);
      matrix[j * size + k] = static_cast<float>(factor * value);
    }
  }
  return scope.program().Constant({size, size}, std::move(matrix));
}

class Fourier final : public TokenMixer {
 public:
  explicit Fourier(const FourierConfig& config) : config_(config) {}

  MixerTraits traits() const override {
    const int64_t length = config_.max_length();
    return {.limits = {{length, "fourier.max_length", std::to_string(length)}}};
  }

  void Validate(const FieldReport&) const override {}

  Value Build(const Scope& scope, const MixerInput& input) const override {
    const Value x = WithoutPadding(scope, input.x, input.segments);
    const TensorType type = scope.TypeOf(x);
    const int64_t length = type.shape[1], width = type.shape[2], period = config_.max_length();
    SYNTRA_CHECK(length <= period, "{} positions for a transform of {}", length, period);
    const double factor =
        config_.orthonormal() ? 1 / std::sqrt(static_cast<double>(period * width)) : 1;
    const auto transformed = [&](Wave wave, double sign) {
      const Value columns = scope.One("matmul",
                                      {{"transpose_a", false},
                                       {"transpose_b", false},
                                       {"dtype", std::string(NameOf(type.dtype))}},
                                      {x, Waves(scope, wave, width, width, sign * factor)});
      return scope.One("shared_matmul", {{"transpose", false}},
                       {Waves(scope, wave, length, period, 1), columns});
    };
    return Add(scope, transformed(Wave::kCosine, 1), transformed(Wave::kSine, -1));
  }

 private:
  FourierConfig config_;
};

}  // namespace

std::unique_ptr<TokenMixer> mixer_fourier(const MixerConfig& config) {
  return std::make_unique<Fourier>(config.fourier());
}

}  // namespace syntra
