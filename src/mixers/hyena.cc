// SPDX-License-Identifier: Apache-2.0
// Hyena (Poli et al. 2023, "Hyena Hierarchy", definition 3.1): gates and convolutions as long as
// the sequence, in turn. The filters are what a small network says of the distance, times an
// exponential decay (section 3.3). In an encoder a second network is for later positions.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "base/error.h"
#include "mixers/convolution.h"
#include "nn/layers.h"
#include "nn/tensors.h"

namespace syntra {
namespace {

// At these distances, in longest sequences, the decay of the first and of the last column is
// kDecayedTo; those between are spread evenly in its exponent. As in the authors' code.
constexpr double kFirstColumn = 1.5, kLastColumn = 0.3, kDecayedTo = 0.01;

// Positions that a filter reads: its own and earlier ones, or later ones.
enum class Direction { kBack, kAhead };

class Hyena final : public TokenMixer {
 public:
  explicit Hyena(const HyenaConfig& config) : config_(config) {}

  MixerTraits traits() const override {
    return {.causal = true, .limits = {LengthLimit::OfMaxLength(config_.max_length())}};
  }

  Value Build(const Scope& scope, const MixerInput& input) const override {
    const Shape shape = scope.TypeOf(input.x).shape;
    const int64_t taps = config_.kernel_size(), left = input.causal ? taps - 1 : (taps - 1) / 2;
    const Value projected = Projected(scope, input.x);
    const int64_t columns = scope.TypeOf(projected).shape[2];
    const Value local = scope.One("depthwise_conv", {{"groups", columns}, {"left", left}},
                                  {projected, ShortFilters(scope, columns), input.segments});
    const auto filters = [&] {
      const Value back = Filters(scope, Direction::kBack, shape[1], shape[2]);
      if (input.causal) return back;
      return Concatenate(scope, 0, {back, Filters(scope, Direction::kAhead, shape[1], shape[2])});
    };
    return Output(scope, local, shape[2], filters, [&](int64_t, Value x, Value filter) {
      return Convolved(scope, WithoutPadding(scope, x, input.segments), filter);
    });
  }

  // Keeps what each convolution has read.
  Value BuildStep(const Scope& scope, const MixerStep& step) const override {
    const int64_t width = scope.TypeOf(step.x).shape[2];
    const Value projected = Projected(scope, step.x);
    const int64_t columns = scope.TypeOf(projected).shape[2];
    const auto sum = [&](Value window, Value filters) {
      const TensorType type = scope.TypeOf(window);
      return Cast(scope, SumTo(scope, window, {type.shape[0], 1, type.shape[2]}, filters),
                  type.dtype);
    };
    const Value local = sum(Window(scope, step, "window", projected, config_.kernel_size()),
                            Transpose(scope, ShortFilters(scope, columns), {1, 0}));
    const auto filters = [&] { return Filters(scope, Direction::kBack, step.length, width); };
    return Output(scope, local, width, filters, [&](int64_t index, Value x, Value filter) {
      return sum(Window(scope, step, "window_" + std::to_string(index), x, step.length), filter);
    });
  }

 private:
  // Values and gates side by side, [B, T, (order + 1) * width].
  Value Projected(const Scope& scope, Value x) const {
    const int64_t width = scope.TypeOf(x).shape[2];
    return Affine(scope, "input", x, (config_.order() + 1) * width,
                  Initializer::Normal(1 / std::sqrt(static_cast<double>(width))));
  }

  Value ShortFilters(const Scope& scope, int64_t columns) const {
    const int64_t taps = config_.kernel_size();
    return scope.Parameter("short_filters", {columns, taps},
                           Initializer::Uniform(1 / std::sqrt(static_cast<double>(taps))));
  }

  // From the outputs of the short filters, [B, T, (order + 1) * width]. `filters` gives those of
  // all convolutions side by side.
  Value Output(const Scope& scope, Value local, int64_t width,
               const std::function<Value()>& filters,
               const std::function<Value(int64_t index, Value x, Value filter)>& convolved) const {
    const int64_t order = config_.order();
    Value all;
    local = AddBias(scope, "short_filters_bias", local);
    const auto part = [&](int64_t index) { return Slice(scope, local, 2, index * width, width); };
    Value values = part(order);
    for (int64_t index = 0; index + 1 < order; ++index) {
      values = Multiply(scope, values, part(order - 1 - index));
      const Value skip =
          scope.Parameter("skip_" + std::to_string(index), {width}, Initializer::Normal(1));
      if (!all) all = filters();
      const Value filter = Slice(scope, all, 1, index * width, width);
      values = Add(scope, convolved(index, values, filter), Multiply(scope, values, skip));
    }
    return Affine(scope, "output", Multiply(scope, values, part(0)), width,
                  Initializer::Normal(1 / std::sqrt(static_cast<double>(width))));
  }

  // The filters of all convolutions, f32 [length, (order - 1) * width], the earliest position
  // first. Those that look ahead begin with the next position; the last of them reaches none.
  Value Filters(const Scope& scope, Direction direction, int64_t length, int64_t width) const {
    SYNTRA_CHECK(length <= config_.max_length(), "hyena of {} positions", length);
    const bool back = direction == Direction::kBack;
    const Scope network = scope / (back ? "filters_back" : "filters_ahead");
    const int64_t outputs = (config_.order() - 1) * width;
    const int64_t first = back ? 0 : 1;
    const Value decayed =
        Multiply(scope, Network(network, outputs, Distances(scope, first, length)),
                 Decay(scope, first, length, width));
    if (!back) return decayed;
    std::vector<int32_t> reversed(length);
    for (int64_t i = 0; i < length; ++i) reversed[i] = static_cast<int32_t>(length - 1 - i);
    return GatherRows(scope, decayed, 0, scope.program().Constant({length}, std::move(reversed)));
  }

  // Three layers with sines of learned frequencies, and one without.
  Value Network(const Scope& scope, int64_t outputs, Value x) const {
    const int64_t units = config_.filter_width();
    const Value frequencies =
        scope.Parameter("frequencies", {units}, Initializer::Constant(config_.filter_frequency()));
    const auto linear = [&](const std::string& name, Value from, int64_t out) {
      const int64_t in = scope.TypeOf(from).shape[1];
      const Value matrix = scope.Parameter(
          name, {in, out}, Initializer::Uniform(1 / std::sqrt(static_cast<double>(in))));
      return Product(scope, from, matrix, DType::kF32);
    };
    for (const char* name : {"first", "second", "third"}) {
      const Value sum = AddBias(scope, std::string(name) + "_bias", linear(name, x, units));
      x = Activation(scope, "sine", Multiply(scope, sum, frequencies));
    }
    return linear("last", x, outputs);
  }

  // The network's inputs for `length` distances from `first` on: the distance as a fraction of the
  // longest sequence, and its cosines and sines; f32 [length, 1 + 2 * bands].
  Value Distances(const Scope& scope, int64_t first, int64_t length) const {
    const int64_t bands = config_.bands();
    std::vector<float> table;
    for (int64_t i = first; i < first + length; ++i) {
      const double angle = 2 * std::numbers::pi * Relative(i);
      table.push_back(static_cast<float>(Relative(i)));
      for (int64_t b = 0; b < bands; ++b) {
        table.push_back(static_cast<float>(std::cos(angle * static_cast<double>(b))));
      }
      for (int64_t b = 0; b < bands; ++b) {
        table.push_back(static_cast<float>(-std::sin(angle * static_cast<double>(b))));
      }
    }
    return scope.program().Constant({length, 1 + 2 * bands}, std::move(table));
  }

  // The decay of the same distances, for all convolutions; f32 [length, (order - 1) * width].
  Value Decay(const Scope& scope, int64_t first, int64_t length, int64_t width) const {
    const double of_first = 1 / kFirstColumn, of_last = 1 / kLastColumn;
    std::vector<float> table;
    for (int64_t i = first; i < first + length; ++i) {
      for (int64_t c = 0; c < (config_.order() - 1) * width; ++c) {
        const double place =
            static_cast<double>(c % width) / static_cast<double>(std::max<int64_t>(width - 1, 1));
        const double rate = of_first + (of_last - of_first) * place;
        table.push_back(static_cast<float>(std::pow(kDecayedTo, rate * Relative(i))));
      }
    }
    return scope.program().Constant({length, (config_.order() - 1) * width}, std::move(table));
  }

  double Relative(int64_t distance) const {
    return static_cast<double>(distance) / static_cast<double>(config_.max_length());
  }

  // x [B, T, D] convolved with filters [taps, D], of which tap T - 1 is for a position itself.
  static Value Convolved(const Scope& scope, Value x, Value filters) {
    const Shape shape = scope.TypeOf(x).shape;
    return scope.One("depthwise_conv", {{"groups", shape[2]}, {"left", shape[1] - 1}},
                     {x, Transpose(scope, filters, {1, 0}), Value{}});
  }

  HyenaConfig config_;
};

}  // namespace

std::unique_ptr<TokenMixer> mixer_hyena(const MixerConfig& config) {
  return std::make_unique<Hyena>(config.hyena());
}

}  // namespace syntra
