// SPDX-License-Identifier: Apache-2.0
#include "decode/session.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "base/octave.h"
#include "decode/cache_layout.h"
#include "nn/tensors.h"

namespace syntra {
namespace {

// Fewer rows take as long: a step reads every weight.
constexpr int64_t kFewestRows = 8;

// How many inputs a step should compute if `open` are not finished and it computes `now`. Each
// number needs a program of its own, so a step only shrinks by a quarter or more.
int64_t StepInputs(int64_t open, int64_t now, int64_t rows_per_input) {
  const int64_t least = DivideUp(kFewestRows, rows_per_input);
  const int64_t fits = RoundUpInOctave(std::max(open, least), 1, now);
  return 4 * fits <= 3 * now ? fits : now;
}

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

// Copies states from some rows to others, in place. Program inputs, i32: "rows" [rows], from which
// row each takes the states of its prefix, negative: it keeps its own; "length" [1], of the
// prefixes; with `memory`, "inputs" [inputs], the same for what was read of each input.
Program CopyingProgram(const DecodeShape& shape, CacheLayout& layout, bool memory) {
  ProgramBuilder builder;
  const Value rows = builder.Input("rows", {DType::kI32, {shape.rows()}});
  const Value length = builder.Input("length", {DType::kI32, {1}});
  const Value inputs = memory ? builder.Input("inputs", {DType::kI32, {shape.inputs}}) : Value{};
  const auto states = layout.places();
  for (const auto& [name, place] : states) {
    const bool of_input = place.kind == StateKind::kMemory;
    if (of_input && !memory) continue;
    const Value state = layout.Get(builder, name, place.type, place.kind);
    const auto all = static_cast<int32_t>(place.type.shape[1]);
    const Value taken =
        place.kind == StateKind::kPositions ? length : builder.Constant({1}, std::vector{all});
    builder.RecordUpdate("take_rows", {}, {state, of_input ? inputs : rows, taken}, {state});
  }
  return std::move(builder).Build();
}

// The programs that every session has, and the memory that they share.
struct SessionPrograms {
  CacheLayout layout;
  Program read, step;

  SessionPrograms(const TrainedModel& model, const DecodeShape& shape, NextTokens next) {
    CheckDecodes(model.model);
    read = ReadingProgram(model, shape, layout);
    step = StepProgram(model, shape, next, layout);
  }
};

}  // namespace

void SetBatchInputs(Executable& program, const Batch& batch) {
  for (const auto& [name, values] : batch.tensors()) {
    if (program.Has(name)) program.SetInput(name, std::span<const int32_t>(values));
  }
}

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
  return {programs.layout.bytes(), std::max(bytes(programs.read), bytes(programs.step))};
}

DecodeSession::DecodeSession(const TrainedModel& model, const DecodeShape& shape, NextTokens next,
                             TransientBuffer* caches)
    : model_(model),
      device_(model.backend.device()),
      shape_(shape),
      reading_(model.model.architecture().input_reading(model.model)),
      next_(next),
      own_caches_(device_) {
  SessionPrograms programs(model, shape, next);
  layout_ = std::make_unique<CacheLayout>(std::move(programs.layout));
  if (!caches) caches = &own_caches_;
  caches->Reserve(layout_->bytes());
  caches_ = caches->data();
  for (const auto& [name, place] : layout_->places()) {
    if (place.kind == StateKind::kMemory) continue;
    of_steps_.push_back({caches_ + place.offset * sizeof(float), place.type.bytes()});
  }
  read_ = Bind(std::move(programs.read), model.transients);
  steps_[shape.inputs] = Bind(std::move(programs.step), model.transients);
}

std::unique_ptr<Executable> DecodeSession::Bind(Program program, TransientBuffer* transients) {
  Arenas arenas = model_.arenas();
  arenas.state = caches_;
  arenas.transients = transients;
  arenas.packed = model_.packed;
  return std::make_unique<Executable>(std::move(program), model_.backend, arenas);
}

size_t DecodeSession::cache_bytes() const { return layout_->bytes(); }

DecodeSession::~DecodeSession() {
  try {
    device_.Wait();
  } catch (const std::exception&) {
    // A device that fails says so to whoever asks it for results.
  }
}

void DecodeSession::Start(std::span<const int32_t> ids, std::span<const int32_t> segments) {
  // Sums start from zeros, and mixers multiply rows that no step has written yet by zero: there
  // numbers of another session, read as another type, may be no numbers.
  for (const std::span<std::byte> state : of_steps_) device_.Clear(state.data(), state.size());
  length_ = input_positions_ = 0;
  max_length_ = shape_.max_length;
  first_tokens_.assign(shape_.rows(), 0);
  segments_.assign(segments.begin(), segments.end());
  finished_.assign(shape_.inputs, false);
  order_.resize(shape_.inputs);
  std::iota(order_.begin(), order_.end(), 0);
  UseStep();
  if (reading_ != InputReading::kEncoder) return ReadInRow(ids, segments);
  read_->SetInput("encoder_ids", ids);
  read_->SetInput("encoder_segments", segments);
  read_->Run();
}

// The step of the inputs in order_.
void DecodeSession::UseStep() {
  DecodeShape shape = shape_;
  shape.inputs = std::ssize(order_);
  std::unique_ptr<Executable>& step = steps_[shape.inputs];
  if (!step) step = Bind(StepProgram(model_, shape, next_, *layout_), model_.transients);
  step_ = step.get();
  places_.assign(shape_.inputs, -1);
  std::vector<int32_t> segments;
  for (int64_t place = 0; place < shape.inputs; ++place) {
    places_[order_[place]] = place;
    const auto of_input = segments_.begin() + order_[place] * shape_.input_length;
    segments.insert(segments.end(), of_input, of_input + shape_.input_length);
  }
  if (reading_ != InputReading::kEncoder) return;
  step_->SetInput("encoder_segments", std::span<const int32_t>(segments));
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
  SetBatchInputs(*read_, batch);
  read_->Run();
}

void DecodeSession::Append(std::span<const int32_t> ids) {
  SYNTRA_CHECK(length_ < max_length_, "a prefix of more than {} tokens", max_length_);
  LeaveOutFinished();
  const auto start = static_cast<int32_t>(input_positions_ + length_);
  std::vector<int32_t> in_places(order_.size() * shape_.rows_per_input);
  ForEachPlacedRow([&](int64_t row, int64_t place) { in_places[place] = ids[row]; });
  step_->SetInput("decoder_ids", std::span<const int32_t>(in_places));
  step_->SetInput("start", std::span<const int32_t>(&start, 1));
  step_->Run();
  ++length_;
}

void DecodeSession::TakePrefixes(std::span<const int32_t> parents) {
  std::vector<int32_t> taken(shape_.rows(), -1);
  bool any = false;
  ForEachPlacedRow([&](int64_t row, int64_t place) {
    const int64_t parent = parents[row], input = row / shape_.rows_per_input;
    SYNTRA_CHECK(parent / shape_.rows_per_input == input && parents[parent] == parent,
                 "row {} takes the prefix of row {}", row, parent);
    if (parent == row) return;
    any = true;
    taken[place] = static_cast<int32_t>(place + parent - row);
  });
  if (!any || length_ == 0) return;
  // Outputs of the step last.
  if (!take_prefixes_) {
    take_prefixes_ = Bind(CopyingProgram(shape_, *layout_, /*memory=*/false), nullptr);
  }
  CopyStates(*take_prefixes_, taken);
}

void DecodeSession::Finish(int64_t input) { finished_[input] = true; }

void DecodeSession::LeaveOutFinished() {
  if (!device_.is_host()) return;  // a GPU takes as long for a few rows as for many
  const int64_t rows_per_input = shape_.rows_per_input, now = std::ssize(order_);
  const int64_t inputs = StepInputs(std::ranges::count(finished_, false), now, rows_per_input);
  if (inputs == now) return;
  // Inputs of the places that go take those of finished ones.
  std::vector<int32_t> moves(shape_.inputs, -1), rows(shape_.rows(), -1);
  int64_t to = 0;
  for (int64_t from = inputs; from < now; ++from) {
    if (finished_[order_[from]]) continue;
    while (!finished_[order_[to]]) ++to;
    order_[to] = order_[from];
    moves[to] = static_cast<int32_t>(from);
    for (int64_t k = 0; k < rows_per_input; ++k) {
      rows[to * rows_per_input + k] = static_cast<int32_t>(from * rows_per_input + k);
    }
  }
  if (!move_inputs_) {
    move_inputs_ = Bind(CopyingProgram(shape_, *layout_, /*memory=*/true), nullptr);
  }
  move_inputs_->SetInput("inputs", std::span<const int32_t>(moves));
  CopyStates(*move_inputs_, rows);
  order_.resize(inputs);
  UseStep();
}

void DecodeSession::CopyStates(Executable& copying, std::span<const int32_t> rows) {
  const auto length = static_cast<int32_t>(input_positions_ + length_);
  copying.SetInput("rows", rows);
  copying.SetInput("length", std::span<const int32_t>(&length, 1));
  copying.Run();
}

template <typename T>
std::vector<T> DecodeSession::ByRow(const std::string& output) const {
  std::vector<T> by_row(shape_.rows());
  const std::span<const T> by_place = step_->Tensor(output).As<T>();
  ForEachPlacedRow([&](int64_t row, int64_t place) { by_row[row] = by_place[place]; });
  return by_row;
}

std::vector<int32_t> DecodeSession::best() const { return ByRow<int32_t>("best"); }

std::vector<float> DecodeSession::log_probabilities() const {
  if (next_ != NextTokens::kBestWithLogProbability) return {};
  return ByRow<float>("log_probabilities");
}

LogitRows DecodeSession::logits() const {
  const std::span<const float> all = step_->Tensor("logits").As<float>();
  const int64_t rows = std::ssize(order_) * shape_.rows_per_input;
  return {all, std::ssize(all) / rows, shape_.rows_per_input, places_};
}

}  // namespace syntra
