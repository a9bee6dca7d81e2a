// SPDX-License-Identifier: Apache-2.0
#include "mixers/mixer_trial.h"

#include "program/numbers.h"
#include "program/weighted_sum.h"

namespace syntra {
namespace {

std::vector<int32_t> SegmentsOf(const MixerSetting& setting) {
  if (!setting.segments.empty()) return setting.segments;
  return std::vector<int32_t>(setting.batch * setting.length, 1);
}

}  // namespace

std::vector<float> RandomRows(int64_t batch, int64_t length, const std::string& name) {
  return NormalNumbers("rows of " + name, batch * length * kTrialWidth);
}

std::vector<int32_t> PositionsInSegments(const std::vector<int32_t>& segments, int64_t length) {
  std::vector<int32_t> positions(segments.size());
  for (size_t i = 0; i < segments.size(); ++i) {
    const bool starts = i % length == 0 || segments[i] != segments[i - 1];
    positions[i] = starts ? 0 : positions[i - 1] + 1;
  }
  return positions;
}

std::vector<float> TrialValues(const MixerSetting& setting, const Parameter& parameter) {
  if (const auto it = setting.values.find(parameter.name); it != setting.values.end()) {
    return it->second;
  }
  // Large enough for probabilities far from uniform, small enough for one not to take all.
  const bool matrix = parameter.shape.rank() == 2 && parameter.shape[0] == kTrialWidth;
  const double deviation = matrix ? 0.4 : 0.7;
  return NormalNumbers(parameter.name, parameter.shape.size(), deviation);
}

Value TrialBias(const Scope& scope, const TokenMixer& mixer, const BiasExtent& extent) {
  const int64_t heads = mixer.traits().bias_heads;
  if (heads == 0) return {};
  RelativeBiasConfig config;
  config.set_buckets(8);
  config.set_max_distance(16);
  return RelativeBias(scope, "input:relative_bias", config, heads, extent);
}

// The input of a sequence of activations; the program has inputs for what it reads besides.
MixerInput InputOf(const MixerSetting& setting, const Scope& root, const TokenMixer& mixer,
                   Value x) {
  ProgramBuilder& builder = root.program();
  const TensorType rows{DType::kI32, {setting.batch, root.TypeOf(x).shape[1]}};
  const int64_t length = rows.shape[1];
  const bool prefixes = !setting.prefix_ends.empty();
  return {.x = x,
          .segments = builder.Input("segments", rows),
          .positions = builder.Input("positions", rows),
          .relative_bias = TrialBias(root, mixer, {length, length, setting.causal && !prefixes}),
          .causal = setting.causal,
          .prefix_ends = prefixes ? builder.Input("prefix_ends", rows) : Value{}};
}

MixerTrial::MixerTrial(const MixerSetting& setting, Backend& backend, TransientMemory transients) {
  const auto mixer = MakeMixer(setting.config);
  ProgramBuilder builder;
  Recording recording{.program = builder,
                      .parameters = parameters_,
                      .declares = &parameters_,
                      .activations = setting.activations,
                      .training = !setting.keys.empty()};
  if (recording.training) {
    recording.dropout_keys = builder.Input("dropout_keys", {DType::kI32, {setting.batch, 2}});
  }
  const Scope root(recording);
  const Value x = root.Parameter("input:x", {setting.batch, setting.length, kTrialWidth},
                                 Initializer::Normal(1));
  const std::string dtype(NameOf(setting.activations));
  const Value activations = root.One("copy", {{"dtype", dtype}}, {x});
  const MixerInput input = InputOf(setting, root, *mixer, activations);
  Value y;
  builder.Region(setting.recompute, [&] { y = mixer->Build(root, input); });
  builder.Output("y", y);
  if (setting.differentiated) {
    const Value wide = root.One("copy", {{"dtype", std::string("f32")}}, {y});
    const Value loss = WeightedSum(builder, wide, builder.Input("cotangent", builder.TypeOf(wide)));
    builder.Output("loss", loss);
    builder.Differentiate(loss);
  }

  memory_ = std::make_unique<ArenaMemory>(parameters_, backend);
  for (const Parameter& parameter : parameters_.all()) {
    memory_->SetParameter(parameter, TrialValues(setting, parameter));
  }
  const std::vector<float> rows =
      setting.x.empty() ? RandomRows(setting.batch, setting.length) : setting.x;
  memory_->SetParameter(parameters_.Get("input:x"), rows);
  executable_ = std::make_unique<Executable>(std::move(builder).Build(), backend, memory_->arenas(),
                                             transients);
  const std::vector<int32_t> segments = SegmentsOf(setting);
  const std::vector<int32_t> positions = PositionsInSegments(segments, setting.length);
  if (!setting.keys.empty()) {
    executable_->SetInput("dropout_keys", std::span<const int32_t>(setting.keys));
  }
  if (!setting.prefix_ends.empty()) {
    executable_->SetInput("prefix_ends", std::span<const int32_t>(setting.prefix_ends));
  }
  executable_->SetInput("segments", std::span<const int32_t>(segments));
  executable_->SetInput("positions", std::span<const int32_t>(positions));
  if (!setting.differentiated) return;
  std::vector<float> cotangent =
      NormalNumbers("cotangent", setting.batch * setting.length * kTrialWidth);
  for (size_t i = 0; i < cotangent.size(); ++i) {
    if (segments[i / kTrialWidth] == 0) cotangent[i] = 0;
  }
  executable_->SetInput("cotangent", std::span<const float>(cotangent));
}

void MixerTrial::Run() {
  memory_->ClearGradients();
  executable_->RunChecked();
}

std::vector<double> MixerTrial::Y() const { return Numbers(executable_->Tensor("y")); }

std::map<std::string, std::vector<double>> MixerTrial::Gradients() const {
  std::map<std::string, std::vector<double>> gradients;
  for (const Parameter& parameter : parameters_.all()) {
    if (parameter.trainable) gradients[parameter.name] = memory_->Gradient(parameter);
  }
  return gradients;
}

std::vector<double> OutputOf(const MixerSetting& setting, Backend& backend) {
  MixerSetting forward = setting;
  forward.differentiated = false;
  MixerTrial trial(forward, backend);
  trial.Run();
  return trial.Y();
}

namespace {

// Programs over one position or several, which share their states.
class Decoder {
 public:
  Decoder(const MixerSetting& setting, Backend& backend, int64_t prefilled)
      : setting_(setting), mixer_(MakeMixer(setting.config)) {
    Program step = StepProgram();
    std::optional<Program> prefill;
    if (prefilled > 0) prefill = PrefillProgram(prefilled);
    memory_ = std::make_unique<ArenaMemory>(parameters_, backend, elements_);
    for (const Parameter& parameter : parameters_.all()) {
      memory_->SetParameter(parameter, TrialValues(setting, parameter));
    }
    step_ = std::make_unique<Executable>(std::move(step), backend, memory_->arenas());
    if (!prefill) return;
    prefill_ = std::make_unique<Executable>(std::move(*prefill), backend, memory_->arenas());
  }

  // x [batch, prefilled, kTrialWidth], and y of it.
  std::vector<double> Prefill(const std::vector<float>& x) {
    const auto length = std::ssize(x) / kTrialWidth / setting_.batch;
    std::vector<int32_t> ends;
    for (int64_t b = 0; b < setting_.batch && !setting_.prefix_ends.empty(); ++b) {
      const auto row = setting_.prefix_ends.begin() + b * setting_.length;
      ends.insert(ends.end(), row, row + length);
    }
    const std::vector<int32_t> segments(setting_.batch * length, 1);
    const std::vector<int32_t> positions = PositionsInSegments(segments, length);
    const auto set = [&](const char* name, const std::vector<int32_t>& values) {
      if (prefill_->Has(name)) prefill_->SetInput(name, std::span<const int32_t>(values));
    };
    set("prefix_ends", ends);
    set("segments", segments);
    set("positions", positions);
    return Run(x, *prefill_);
  }

  // x [batch, 1, kTrialWidth], and y of it.
  std::vector<double> Step(const std::vector<float>& x, int32_t start) {
    step_->SetInput("start", std::span<const int32_t>(&start, 1));
    return Run(x, *step_);
  }

  const std::set<StateKind>& kinds() const { return kinds_; }

 private:
  static std::vector<double> Run(const std::vector<float>& x, Executable& program) {
    program.SetInput("x", std::span<const float>(x));
    program.RunChecked();
    return Numbers(program.Tensor("y"));
  }

  // A program whose input x [batch, length, kTrialWidth] becomes the output y.
  template <typename Record>
  Program Recorded(int64_t length, const Record& record) {
    ProgramBuilder builder;
    Recording recording{.program = builder,
                        .parameters = parameters_,
                        .declares = &parameters_,
                        .activations = setting_.activations};
    const Scope root(recording);
    const Value rows = builder.Input("x", {DType::kF32, {setting_.batch, length, kTrialWidth}});
    const std::string dtype(NameOf(setting_.activations));
    builder.Output("y", record(root, root.One("copy", {{"dtype", dtype}}, {rows})));
    return std::move(builder).Build();
  }

  MixerState StatesIn(ProgramBuilder& builder) {
    return [this, &builder](const std::string& name, const TensorType& type, StateKind kind) {
      kinds_.insert(kind);
      const auto [place, fresh] = places_.emplace(name, elements_);
      if (fresh) elements_ += type.shape.size();
      return builder.State("cache/" + name, type, place->second);
    };
  }

  Program StepProgram() {
    return Recorded(1, [&](const Scope& root, Value x) {
      const Value start = root.program().Input("start", {DType::kI32, {1}});
      const bool prefixes = !setting_.prefix_ends.empty();
      return mixer_->BuildStep(
          root, {.x = x,
                 .start = start,
                 .relative_bias = TrialBias(root, *mixer_, {1, setting_.length, !prefixes, start}),
                 .length = setting_.length,
                 .bidirectional_prefix = prefixes,
                 .state = StatesIn(root.program())});
    });
  }

  Program PrefillProgram(int64_t length) {
    return Recorded(length, [&](const Scope& root, Value x) {
      MixerInput input = InputOf(setting_, root, *mixer_, x);
      input.state = StatesIn(root.program());
      input.length = setting_.length;
      return mixer_->Build(root, input);
    });
  }

  const MixerSetting& setting_;
  std::unique_ptr<TokenMixer> mixer_;
  ParameterStore parameters_;
  std::set<StateKind> kinds_;  // of the states
  std::map<std::string, int64_t> places_;
  int64_t elements_ = 0;
  std::unique_ptr<ArenaMemory> memory_;
  std::unique_ptr<Executable> step_, prefill_;
};

}  // namespace

std::vector<double> DecodeRows(const MixerSetting& setting, Backend& backend, int64_t prefilled) {
  Decoder decoder(setting, backend, prefilled);
  const std::vector<float> x =
      setting.x.empty() ? RandomRows(setting.batch, setting.length) : setting.x;
  std::vector<double> all(x.size());
  const auto row_of = [&](int64_t b, int64_t t) { return (b * setting.length + t) * kTrialWidth; };
  for (int64_t begin = 0; begin < setting.length;) {
    const bool at_once = begin == 0 && prefilled > 0;
    const int64_t size = (at_once ? prefilled : 1) * kTrialWidth;
    std::vector<float> now;
    for (int64_t b = 0; b < setting.batch; ++b) {
      now.insert(now.end(), x.begin() + row_of(b, begin), x.begin() + row_of(b, begin) + size);
    }
    const std::vector<double> found =
        at_once ? decoder.Prefill(now) : decoder.Step(now, static_cast<int32_t>(begin));
    for (int64_t b = 0; b < setting.batch; ++b) {
      std::copy_n(found.begin() + b * size, size, all.begin() + row_of(b, begin));
    }
    begin += size / kTrialWidth;
  }
  return all;
}

std::set<StateKind> StatesOfSteps(const MixerConfig& config) {
  const MixerSetting setting{.config = config, .causal = true};
  return Decoder(setting, ReferenceBackend(), 0).kinds();
}

}  // namespace syntra
