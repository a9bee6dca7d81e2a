// SPDX-License-Identifier: Apache-2.0
#include "mixers/mixer_trial.h"

#include <google/protobuf/text_format.h>

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

const std::vector<MixerCase>& MixerCases() {
  static const std::vector<MixerCase> cases = [] {
    const std::string dot = " term { dot_product {} }";
    const std::string random = " term { random { max_length: 9 } }";
    const std::string factorized = " term { factorized_random { max_length: 9 rank: 3 } }";
    const std::string broadcast =
        " term { factorized_random { max_length: 9 rank: 3 broadcast_over_queries: true } }";
    const auto dense = [](const std::string& more = "") {
      return " term { dense { max_length: 9 " + more + " } }";
    };
    const auto factorized_dense = [](const std::string& more = "") {
      return " term { factorized_dense { a: 3 b: 3 " + more + " } }";
    };
    const std::string no_bias = " relative_bias: false";
    const std::string sigmoid = " gate: SIGMOID", softmax = " gate: SOFTMAX";
    const std::string by_position = " index_by: SEGMENT_POSITION";
    std::vector<MixerCase> list;
    const auto add = [&](const std::string& name, const std::string& text) {
      list.push_back({name, "attention { heads: 3 head_size: 4" + text + " }"});
    };
    add("dot", dot);
    add("dot_without_bias", dot + no_bias);
    add("random", random);
    add("random_without_bias", random + no_bias);
    add("random_one_for_all_heads", " term { random { max_length: 9 per_head: false } }");
    add("random_one_for_all_heads_without_bias",
        " term { random { max_length: 9 per_head: false } }" + no_bias);
    add("random_fixed", " term { random { max_length: 9 trainable: false } }" + no_bias);
    add("random_by_position", random + by_position);
    add("factorized_random", factorized);
    add("factorized_random_without_bias", factorized + no_bias);
    add("factorized_random_by_position", factorized + by_position);
    add("factorized_random_broadcast", broadcast);
    add("factorized_random_broadcast_without_bias", broadcast + no_bias);
    add("dense", dense());
    add("dense_without_bias", dense() + no_bias);
    add("dense_by_position", dense() + by_position);
    add("dense_per_head", dense("share_heads: false"));
    add("dense_hidden", dense("hidden: 5"));
    add("dense_biases", dense("bias: true"));
    add("dense_biases_per_head", dense("bias: true share_heads: false hidden: 5") + no_bias);
    add("factorized_dense", factorized_dense());
    add("factorized_dense_by_position", factorized_dense() + by_position);
    add("factorized_dense_per_head",
        factorized_dense("bias: true share_heads: false hidden: 5") + no_bias);
    add("dense_and_dot", dense() + dot);
    add("dense_and_dot_sigmoid", dense() + dot + sigmoid);
    add("dense_and_dot_apart", dot + dense("share_query: false") + softmax);
    add("dense_and_dot_biases", dot + dense("bias: true"));
    add("dot_and_factorized_dense", dot + factorized_dense("bias: true") + sigmoid + no_bias);
    add("random_and_dot", dot + random);
    add("random_and_dot_sigmoid", dot + random + sigmoid);
    add("random_and_dot_by_position", dot + random + sigmoid + by_position);
    add("factorized_random_and_dot", dot + factorized + sigmoid + no_bias);
    add("random_and_dense", random + dense() + softmax + no_bias);
    add("two_tables", random + factorized + softmax);
    add("two_tables_of_different_lengths",
        " term { random { max_length: 11 } }" + broadcast + softmax);
    const std::string bias = " term { relative_bias { buckets: 8 max_distance: 16 } }" + no_bias;
    add("two_random_tables", random + " term { name: \"other\" random { max_length: 11 } }");
    add("dot_named", " term { name: \"content\" dot_product {} }" + random);
    add("dot_and_own_bias", dot + bias + sigmoid);
    add("own_bias", bias);
    add("three_terms", dot + random + dense("bias: true") + softmax);
    add("all_terms", dot + random + factorized + dense() + factorized_dense() + softmax);
    add("all_terms_by_position", dot + random + factorized + dense("bias: true") +
                                     factorized_dense() + softmax + by_position);
    add("shared_keys_and_values", dot + " key_value_heads: 1");
    add("random_with_shared_values", random + dot + sigmoid + " key_value_heads: 1");
    // Filters that reach from one end of the trials' rows to the other.
    for (const std::string kind : {"light_conv", "dynamic_conv"}) {
      list.push_back({kind, kind + " { kernel_size: 13 heads: 5 }"});
      list.push_back({kind + "_even", kind + " { kernel_size: 14 heads: 2 glu: false }"});
      list.push_back({kind + "_mesh", kind + " { kernel_size: 13 form: MESH }"});
      list.push_back(
          {kind + "_weight_dropout", kind + " { kernel_size: 13 heads: 5 weight_dropout: 0.4 }"});
    }
    list.push_back({"fourier", "fourier { max_length: 9 }"});
    list.push_back({"fourier_orthonormal", "fourier { max_length: 9 orthonormal: true }"});
    const std::string linformer =
        "linformer { heads: 3 head_size: 4 projected_length: 5 max_length: 9 ";
    list.push_back({"linformer", linformer + "}"});
    list.push_back({"linformer_own_heads_shared_values",
                    linformer + "share_heads: false share_values: true }"});
    list.push_back({"mlp", "mlp { width: 6 max_length: 9 }"});
    list.push_back({"gated_mlp", "gated_mlp { width: 12 max_length: 9 }"});
    list.push_back({"gated_mlp_heads_and_attention",
                    "gated_mlp { width: 12 heads: 3 max_length: 9 attention_size: 4 }"});
    // Blocks are shorter than the trials' rows.
    const auto local = [](const std::string& more) {
      return "local_attention { heads: 3 head_size: 4 " + more + " }";
    };
    list.push_back({.name = "local_attention", .text = local("radius: 3"), .reach = 2});
    list.push_back({.name = "local_attention_without_bias",
                    .text = local("radius: 2 relative_bias: false"),
                    .reach = 1});
    list.push_back(
        {.name = "local_attention_dilated", .text = local("radius: 2 dilation: 3"), .reach = 3});
    list.push_back({"local_attention_of_all", local("radius: 128")});
    list.push_back({"local_attention_and_global", local("radius: 2 global_tokens: 2")});
    list.push_back({"local_attention_and_global_dilated",
                    local("radius: 2 dilation: 4 global_tokens: 1 relative_bias: false")});
    list.push_back({.name = "local_attention_all_global",
                    .text = local("global_tokens: 9"),
                    .any_place = true});
    list.push_back({"local_attention_global_projections",
                    local("radius: 2 global_tokens: 4 global_projections: true")});
    const auto big_bird = [](const std::string& more) {
      return "big_bird { heads: 3 head_size: 4 max_length: 9 " + more + " }";
    };
    list.push_back({.name = "big_bird", .text = big_bird("block_size: 2"), .any_place = true});
    list.push_back({"big_bird_random", big_bird("block_size: 1 random_blocks: 1")});
    list.push_back({.name = "big_bird_with_bias",
                    .text = big_bird("block_size: 2 relative_bias: true"),
                    .any_place = true});
    list.push_back({.name = "big_bird_one_block", .text = big_bird(""), .any_place = true});
    const auto sinkhorn = [](const std::string& more) {
      return "sinkhorn { heads: 3 head_size: 4 max_length: 9 " + more + " }";
    };
    list.push_back({"sinkhorn", sinkhorn("block_size: 3")});
    list.push_back({"sinkhorn_softmax", sinkhorn("block_size: 2 iterations: 0 temperature: 2")});
    list.push_back({"sinkhorn_gumbel", sinkhorn("block_size: 3 gumbel_noise: true")});
    const auto reformer = [](const std::string& more) {
      return "reformer { heads: 3 head_size: 4 " + more + " }";
    };
    list.push_back({.name = "reformer",
                    .text = reformer("chunk_length: 3 buckets: 2 rounds: 3"),
                    .sorts = true});
    list.push_back({.name = "reformer_one_chunk",
                    .text = reformer("chunk_length: 9 buckets: 4 rounds: 1"),
                    .sorts = true,
                    .any_place = true});
    // Chunks and pieces of them, longer ones, and one position at a time.
    const std::string heads = "heads: 3 head_size: 4 ";
    list.push_back({"linear_attention", "linear_attention { " + heads + "chunk_length: 3 }"});
    list.push_back({"linear_attention_one_chunk", "linear_attention { " + heads + "}"});
    list.push_back({"performer", "performer { " + heads + "features: 6 chunk_length: 2 }"});
    list.push_back({"performer_relu", "performer { " + heads + "features: 5 kernel: RELU }"});
    // Powers of the decay are rounded to float: each by itself, or step by step.
    const auto add_retention = [&](const std::string& name, const std::string& fields) {
      list.push_back(
          {.name = name, .text = "retention { " + heads + fields + " }", .rounding = 1e-7});
    };
    add_retention("retention", "value_size: 6 chunk_length: 3");
    add_retention("retention_one_chunk", "value_size: 5");
    add_retention("retention_step_by_step", "value_size: 8 chunk_length: 1");
    list.push_back({"attention_free", "attention_free { width: 12 max_length: 9 }"});
    list.push_back(
        {"attention_free_local", "attention_free { width: 12 max_length: 9 window: 2 rank: 3 }"});
    list.push_back(
        {"attention_free_simple", "attention_free { width: 12 max_length: 9 window: 0 }"});
    list.push_back({"hyena", "hyena { max_length: 9 filter_width: 4 bands: 2 }"});
    list.push_back({"hyena_order_3",
                    "hyena { max_length: 9 order: 3 kernel_size: 2 filter_width: 4 bands: 0 }"});
    return list;
  }();
  return cases;
}

MixerConfig ConfigOf(const MixerCase& mixer) {
  MixerConfig config;
  SYNTRA_CHECK(google::protobuf::TextFormat::ParseFromString(mixer.text, &config), "{}",
               mixer.text);
  return config;
}

}  // namespace syntra
