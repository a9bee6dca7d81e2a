// SPDX-License-Identifier: Apache-2.0
#include "decode/greedy.h"

#include <algorithm>
#include <map>

#include "core/buffer.h"

namespace syntra {
namespace {

// Gives each named cache a place in one arena, the same in every program that asks.
class CacheLayout {
 public:
  EncoderDecoder::Cache For(ProgramBuilder& builder, DType dtype) {
    return [this, &builder, dtype](const std::string& name, Shape shape) {
      const TensorType type{dtype, shape};
      const auto [it, fresh] = offsets_.emplace(name, bytes_ / sizeof(float));
      if (fresh) bytes_ += AlignUp(type.bytes());
      return builder.State("cache/" + name, type, it->second);
    };
  }
  size_t bytes() const { return bytes_; }

 private:
  std::map<std::string, int64_t> offsets_;
  size_t bytes_ = 0;
};

}  // namespace

void CheckDecodes(const EncoderDecoder& model) {
  if (model.decoder_mixer().traits().incremental) return;
  Fail(ExitCode::kConfig,
       "a model with index_by: SEGMENT_POSITION cannot generate: its decoder takes a token's place "
       "from the segments of a whole row, and decoding has one position at a time; train with "
       "index_by: ROW to generate");
}

GreedyDecoder::GreedyDecoder(const EncoderDecoder& model, ParameterStore& parameters, void* values,
                             DType activations, const DecodeShape& shape, Backend& backend)
    : shape_(shape) {
  CheckDecodes(model);
  CacheLayout layout;
  const Shape source{shape.rows, shape.input_length};

  ProgramBuilder encode;
  Recording encoding{.program = encode, .parameters = parameters, .activations = activations};
  const Scope encode_root(encoding);
  const Value ids = encode.Input("encoder_ids", {DType::kI32, source});
  const Value segments = encode.Input("encoder_segments", {DType::kI32, source});
  const Value hidden = model.Encode(
      encode_root,
      {.embedded = model.Embed(encode_root, ids), .segments = segments, .positions = {}}, false);
  model.PrepareCross(encode_root, hidden, layout.For(encode, activations));

  ProgramBuilder step;
  Recording stepping{.program = step, .parameters = parameters, .activations = activations};
  const Scope step_root(stepping);
  const Value next = model.DecodeStep(
      step_root, {.ids = step.Input("decoder_ids", {DType::kI32, {shape.rows, 1}}),
                  .start = step.Input("start", {DType::kI32, {1}}),
                  .length = shape.max_length,
                  .memory_segments = step.Input("encoder_segments", {DType::kI32, source}),
                  .segments = step.Constant({DType::kI32, {shape.rows, 1}}, 1),
                  .cache = layout.For(step, activations)});
  step.Output("next_ids", RecordOne(step, "linear_argmax", {{"scale", model.LogitScale()}},
                                    {next, model.OutputTable(step_root)}));

  cache_ = backend.device().Allocate(layout.bytes(), "decoding caches");
  const Arenas arenas{.parameters = values, .gradients = nullptr, .state = cache_.data()};
  encode_ = std::make_unique<Executable>(std::move(encode).Build(), backend, arenas);
  step_ = std::make_unique<Executable>(std::move(step).Build(), backend, arenas);
}

std::vector<std::vector<int32_t>> GreedyDecoder::Decode(std::span<const int32_t> encoder_ids,
                                                        std::span<const int32_t> encoder_segments,
                                                        const Ends& ends) {
  encode_->SetInput("encoder_ids", encoder_ids);
  encode_->SetInput("encoder_segments", encoder_segments);
  encode_->Run();
  step_->SetInput("encoder_segments", encoder_segments);
  // Id 0 starts every output, as in training.
  std::vector<int32_t> ids(shape_.rows, 0);
  std::vector<std::vector<int32_t>> outputs(shape_.rows);
  std::vector<bool> done(shape_.rows, false);
  for (int32_t position = 0; position < shape_.max_length; ++position) {
    step_->SetInput("decoder_ids", std::span<const int32_t>(ids));
    step_->SetInput("start", std::span<const int32_t>(&position, 1));
    step_->Run();
    std::ranges::copy(step_->Tensor("next_ids").As<int32_t>(), ids.begin());
    for (int64_t row = 0; row < shape_.rows; ++row) {
      if (done[row]) continue;
      done[row] = ends(row, ids[row]);
      if (!done[row]) outputs[row].push_back(ids[row]);
    }
    if (std::ranges::all_of(done, [](bool d) { return d; })) break;
  }
  return outputs;
}

}  // namespace syntra
