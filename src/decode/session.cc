// SPDX-License-Identifier: Apache-2.0
#include "decode/session.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>

namespace syntra {
namespace {

struct Place {
  TensorType type;
  int64_t offset;  // in elements of the state arena
};

// Gives each named cache a place in one arena, the same in every program that asks.
class CacheLayout {
 public:
  Value Get(ProgramBuilder& builder, const std::string& name, const TensorType& type) {
    const auto [it, fresh] =
        places_.emplace(name, Place{type, static_cast<int64_t>(bytes_ / sizeof(float))});
    if (fresh) bytes_ += AlignUp(type.bytes());
    return builder.State("cache/" + name, type, it->second.offset);
  }
  MixerState For(ProgramBuilder& builder) {
    return [this, &builder](const std::string& name, const TensorType& type) {
      return Get(builder, name, type);
    };
  }
  const std::map<std::string, Place>& places() const { return places_; }
  size_t bytes() const { return bytes_; }

 private:
  std::map<std::string, Place> places_;
  size_t bytes_ = 0;
};

Program EncodingProgram(const TrainedModel& model, const DecodeShape& shape, CacheLayout& layout) {
  ProgramBuilder builder;
  Recording recording{
      .program = builder, .parameters = model.parameters, .activations = model.activations};
  const Scope root(recording);
  const TensorType source{DType::kI32, {shape.inputs, shape.input_length}};
  const Value ids = builder.Input("encoder_ids", source);
  const Value segments = builder.Input("encoder_segments", source);
  const Value hidden = model.model.encoder().Build(
      root, {.embedded = model.model.Embed(root, ids), .segments = segments}, false);
  model.model.decoder().Prepare(root, hidden, layout.For(builder));
  return std::move(builder).Build();
}

void RecordNext(const Scope& root, const EncoderDecoder& model, Value hidden, NextTokens next) {
  const Attributes scaled{{"scale", model.LogitScale()}};
  const Value table = model.OutputTable(root);
  if (next == NextTokens::kLogits) {
    const Value logits = root.One(
        "matmul", {{"transpose_a", false}, {"transpose_b", true}, {"dtype", std::string("f32")}},
        {hidden, table});
    const Value scale = root.program().FillConstant({DType::kF32, {1}}, model.LogitScale());
    root.program().Output("logits", root.One("scale_by", {{"index", int64_t{0}}}, {logits, scale}));
    return;
  }
  const Value best = root.One("linear_argmax", scaled, {hidden, table});
  root.program().Output("best", best);
  if (next == NextTokens::kBest) return;
  root.program().Output("log_probabilities",
                        root.One("linear_log_probability", scaled, {hidden, table, best}));
}

Program StepProgram(const TrainedModel& model, const DecodeShape& shape, NextTokens next,
                    CacheLayout& layout) {
  ProgramBuilder builder;
  Recording recording{
      .program = builder, .parameters = model.parameters, .activations = model.activations};
  const Scope root(recording);
  const Value ids = builder.Input("decoder_ids", {DType::kI32, {shape.rows(), 1}});
  const TensorType source{DType::kI32, {shape.inputs, shape.input_length}};
  const Value hidden = model.model.decoder().BuildStep(
      root, {.embedded = model.model.Embed(root, ids),
             .start = builder.Input("start", {DType::kI32, {1}}),
             .length = shape.max_length,
             .memory_segments = builder.Input("encoder_segments", source),
             .state = layout.For(builder)});
  RecordNext(root, model.model, hidden, next);
  return std::move(builder).Build();
}

// Takes the rows of every cache that has one for each prefix to `parents`, by way of a spare cache.
Program ReorderProgram(const DecodeShape& shape, CacheLayout& layout) {
  ProgramBuilder builder;
  const TensorType rows{DType::kI32, {shape.rows()}};
  const Value parents = builder.Input("parents", rows), themselves = builder.Input("rows", rows);
  const Value length = builder.Input("length", {DType::kI32, {1}});
  const auto caches = layout.places();
  for (const auto& [name, place] : caches) {
    if (place.type.shape[0] != shape.rows()) continue;  // one for each input
    const Value cache = layout.Get(builder, name, place.type);
    const Value spare =
        layout.Get(builder, fmt::format("spare_{}", ToString(place.type)), place.type);
    builder.RecordUpdate("take_rows", {}, {cache, parents, length}, {spare});
    builder.RecordUpdate("take_rows", {}, {spare, themselves, length}, {cache});
  }
  return std::move(builder).Build();
}

}  // namespace

void CheckDecodes(const EncoderDecoder& model) { model.decoder().CheckIsIncremental(); }

DecodeSession::DecodeSession(const TrainedModel& model, const DecodeShape& shape, NextTokens next)
    : device_(model.backend.device()), shape_(shape), next_(next) {
  CheckDecodes(model.model);
  CacheLayout layout;
  Program encode = EncodingProgram(model, shape, layout);
  Program step = StepProgram(model, shape, next, layout);
  std::optional<Program> reorder;
  if (shape.rows_per_input > 1) reorder = ReorderProgram(shape, layout);

  cache_ = device_.Allocate(layout.bytes(), "decoding caches");
  Arenas arenas{.parameters = model.values,
                .gradients = nullptr,
                .state = cache_.data(),
                .transients = model.transients};
  encode_ = std::make_unique<Executable>(std::move(encode), model.backend, arenas);
  step_ = std::make_unique<Executable>(std::move(step), model.backend, arenas);
  if (!reorder) return;
  arenas.transients = nullptr;  // outputs of the step are read behind it
  reorder_ = std::make_unique<Executable>(std::move(*reorder), model.backend, arenas);
  std::vector<int32_t> rows(shape.rows());
  std::iota(rows.begin(), rows.end(), 0);
  reorder_->SetInput("rows", std::span<const int32_t>(rows));
}

DecodeSession::~DecodeSession() {
  try {
    device_.Wait();
  } catch (const std::exception&) {
    // A device that fails says so to whoever asks it for results.
  }
}

void DecodeSession::Start(std::span<const int32_t> ids, std::span<const int32_t> segments) {
  encode_->SetInput("encoder_ids", ids);
  encode_->SetInput("encoder_segments", segments);
  encode_->Run();
  step_->SetInput("encoder_segments", segments);
  length_ = 0;
}

void DecodeSession::Append(std::span<const int32_t> ids) {
  SYNTRA_CHECK(length_ < shape_.max_length, "a prefix of more than {} tokens", shape_.max_length);
  const auto start = static_cast<int32_t>(length_);
  step_->SetInput("decoder_ids", ids);
  step_->SetInput("start", std::span<const int32_t>(&start, 1));
  step_->Run();
  ++length_;
}

void DecodeSession::Reorder(std::span<const int32_t> parents) {
  bool moves = false;
  for (int64_t row = 0; row < shape_.rows(); ++row) {
    SYNTRA_CHECK(parents[row] / shape_.rows_per_input == row / shape_.rows_per_input,
                 "row {} takes the prefix of row {}, another input's", row, parents[row]);
    moves |= parents[row] != row;
  }
  if (!moves || length_ == 0) return;
  const auto length = static_cast<int32_t>(length_);
  reorder_->SetInput("parents", parents);
  reorder_->SetInput("length", std::span<const int32_t>(&length, 1));
  reorder_->Run();
}

std::span<const int32_t> DecodeSession::best() const { return step_->Tensor("best").As<int32_t>(); }

std::span<const float> DecodeSession::log_probabilities() const {
  if (next_ != NextTokens::kBestWithLogProbability) return {};
  return step_->Tensor("log_probabilities").As<float>();
}

LogitRows DecodeSession::logits() const {
  const std::span<const float> all = step_->Tensor("logits").As<float>();
  return {all, static_cast<int64_t>(all.size()) / shape_.rows()};
}

}  // namespace syntra
