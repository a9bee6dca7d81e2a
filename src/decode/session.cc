// SPDX-License-Identifier: Apache-2.0
#include "decode/session.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>

#include "nn/tensors.h"

namespace syntra {
namespace {

struct StatePlace {
  TensorType type;
  StateKind kind;
  int64_t offset;  // in elements of the state arena
};

// Gives each named cache a place in one arena, the same in every program that asks.
class CacheLayout {
 public:
  Value Get(ProgramBuilder& builder, const std::string& name, const TensorType& type,
            StateKind kind) {
    const auto [it, fresh] =
        places_.emplace(name, StatePlace{type, kind, static_cast<int64_t>(bytes_ / sizeof(float))});
    if (fresh) bytes_ += AlignUp(type.bytes());
    return builder.State("cache/" + name, type, it->second.offset);
  }
  MixerState For(ProgramBuilder& builder) {
    return [this, &builder](const std::string& name, const TensorType& type, StateKind kind) {
      return Get(builder, name, type, kind);
    };
  }
  const std::map<std::string, StatePlace>& places() const { return places_; }
  size_t bytes() const { return bytes_; }

 private:
  std::map<std::string, StatePlace> places_;
  size_t bytes_ = 0;
};

// Inputs at once, or one position of them.
Program ReadingProgram(const TrainedModel& model, const DecodeShape& shape, CacheLayout& layout) {
  ProgramBuilder builder;
  Recording recording{
      .program = builder, .parameters = model.parameters, .activations = model.activations};
  const Scope root(recording);
  const Architecture& architecture = model.model.architecture();
  if (architecture.input_reading(model.model) == InputReading::kSteps) {
    architecture.RecordStep(model.model, root, shape, layout.For(builder));
  } else {
    architecture.RecordInputs(model.model, root, shape, layout.For(builder));
  }
  return std::move(builder).Build();
}

void RecordNext(const Scope& root, const Model& model, Value hidden, NextTokens next) {
  const Attributes scaled{{"scale", model.LogitScale()}};
  const Value table = model.OutputTable(root);
  if (next == NextTokens::kLogits) {
    const Value logits = Product(root, hidden, table, DType::kF32, Transposed::kRight);
    root.program().Output("logits", AffineMap(root, logits, model.LogitScale()));
    return;
  }
  const Value best = root.One("linear_argmax", scaled, {hidden, table});
  root.program().Output("best", best);
  if (next == NextTokens::kBest) return;
  root.program().Output("log_probabilities",
                        root.One("linear_log_probability",
                                 {{"scale", model.LogitScale()}, {"first", model.FirstTarget()}},
                                 {hidden, table, best}));
}

Program StepProgram(const TrainedModel& model, const DecodeShape& shape, NextTokens next,
                    CacheLayout& layout) {
  ProgramBuilder builder;
  Recording recording{
      .program = builder, .parameters = model.parameters, .activations = model.activations};
  const Scope root(recording);
  const Value hidden =
      model.model.architecture().RecordStep(model.model, root, shape, layout.For(builder));
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
    const Value cache = layout.Get(builder, name, place.type, place.kind);
    const Value spare = layout.Get(builder, fmt::format("spare_{}", ToString(place.type)),
                                   place.type, StateKind::kPositions);
    const auto all = static_cast<int32_t>(place.type.shape[1]);
    const Value taken =
        place.kind == StateKind::kRunning ? builder.Constant({1}, std::vector{all}) : length;
    builder.RecordUpdate("take_rows", {}, {cache, parents, taken}, {spare});
    builder.RecordUpdate("take_rows", {}, {spare, themselves, taken}, {cache});
  }
  return std::move(builder).Build();
}

// The programs of a session, and the caches that they share.
struct SessionPrograms {
  CacheLayout layout;
  Program read, step;
  std::optional<Program> reorder;  // where inputs have several prefixes

  SessionPrograms(const TrainedModel& model, const DecodeShape& shape, NextTokens next) {
    CheckDecodes(model.model);
    read = ReadingProgram(model, shape, layout);
    step = StepProgram(model, shape, next, layout);
    if (shape.rows_per_input > 1) reorder = ReorderProgram(shape, layout);
  }
};

}  // namespace

void CheckDecodes(const Model& model) {
  CheckWritesText(model.config());
  model.stack(Side::kDecoder).CheckIsIncremental();
}

DecodingMemory MemoryOfSession(const TrainedModel& model, const DecodeShape& shape,
                               NextTokens next) {
  const SessionPrograms programs(model, shape, next);
  const auto bytes = [&](const Program& program) {
    return PlanOn(model.backend, program, model.backend.KeepsRounded(model.activations))
        .arena_bytes;
  };
  DecodingMemory memory{programs.layout.bytes(),
                        std::max(bytes(programs.read), bytes(programs.step))};
  // Reordering shares no memory with the step, whose outputs are read after it.
  if (programs.reorder) memory.cache_bytes += bytes(*programs.reorder);
  return memory;
}

DecodeSession::DecodeSession(const TrainedModel& model, const DecodeShape& shape, NextTokens next)
    : device_(model.backend.device()),
      shape_(shape),
      reading_(model.model.architecture().input_reading(model.model)),
      next_(next) {
  SessionPrograms programs(model, shape, next);
  cache_ = device_.Allocate(programs.layout.bytes(), "decoding caches");
  for (const auto& [name, place] : programs.layout.places()) {
    if (place.kind != StateKind::kRunning) continue;
    running_.push_back({cache_.data() + place.offset * sizeof(float), place.type.bytes()});
  }
  Arenas arenas{.parameters = model.values,
                .gradients = nullptr,
                .state = cache_.data(),
                .transients = model.transients,
                .rounded = model.rounded};
  read_ = std::make_unique<Executable>(std::move(programs.read), model.backend, arenas);
  step_ = std::make_unique<Executable>(std::move(programs.step), model.backend, arenas);
  if (!programs.reorder) return;
  arenas.transients = nullptr;  // outputs of the step are read after it
  reorder_ = std::make_unique<Executable>(std::move(*programs.reorder), model.backend, arenas);
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
  for (const std::span<std::byte> state : running_) device_.Clear(state.data(), state.size());
  length_ = input_positions_ = 0;
  max_length_ = shape_.max_length;
  first_tokens_.assign(shape_.rows(), 0);
  if (reading_ != InputReading::kEncoder) return ReadInRow(ids, segments);
  read_->SetInput("encoder_ids", ids);
  read_->SetInput("encoder_segments", segments);
  read_->Run();
  step_->SetInput("encoder_segments", segments);
}

// Each position reads the token before it, as in training; the last token is what the first Append
// appends, which computes what follows.
void DecodeSession::ReadInRow(std::span<const int32_t> ids, std::span<const int32_t> segments) {
  const int64_t width = shape_.input_length;
  const auto length_of = [&](int64_t input) {
    return std::ranges::count(segments.subspan(input * width, width), 1);
  };
  const int64_t length = length_of(0);
  for (int64_t input = 0; input < shape_.inputs; ++input) {
    SYNTRA_CHECK(length_of(input) == length, "inputs of {} and {} tokens", length,
                 length_of(input));
  }
  max_length_ = std::min(max_length_, shape_.together - length);
  if (length == 0) return;
  if (reading_ == InputReading::kPrefill) {
    Prefill(ids, length);
  } else {
    ReadBySteps(ids, length);
  }
  input_positions_ = length;
}

void DecodeSession::ReadBySteps(std::span<const int32_t> ids, int64_t length) {
  for (int32_t start = 0; start < length; ++start) {
    read_->SetInput("decoder_ids", std::span<const int32_t>(first_tokens_));
    read_->SetInput("start", std::span<const int32_t>(&start, 1));
    read_->Run();
    for (int64_t row = 0; row < shape_.rows(); ++row) {
      first_tokens_[row] = ids[row / shape_.rows_per_input * shape_.input_length + start];
    }
  }
}

// Rows of training whose only target is not known yet. The position of the last token is computed
// again by the first Append, with the same outcome: others of a bidirectional prefix read it.
void DecodeSession::Prefill(std::span<const int32_t> ids, int64_t length) {
  Batch batch(shape_.rows(), 0, PrefillLength(shape_));
  for (int64_t row = 0; row < shape_.rows(); ++row) {
    const std::span<const int32_t> input =
        ids.subspan(row / shape_.rows_per_input * shape_.input_length, length);
    RowWriter(SharedRows(), row, &batch).Append({length, 1}, [&](const ExampleSlots& slots) {
      std::ranges::copy(input, slots.inputs.begin());
    });
    first_tokens_[row] = input.back();
  }
  for (const auto& [name, values] : batch.tensors()) {
    if (read_->Has(name)) read_->SetInput(name, std::span<const int32_t>(values));
  }
  read_->Run();
}

void DecodeSession::Append(std::span<const int32_t> ids) {
  SYNTRA_CHECK(length_ < max_length_, "a prefix of more than {} tokens", max_length_);
  const auto start = static_cast<int32_t>(input_positions_ + length_);
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
  const auto length = static_cast<int32_t>(input_positions_ + length_);
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
