// SPDX-License-Identifier: Apache-2.0
#include "model/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nn/layers.h"
#include "nn/tensors.h"

namespace syntra {
namespace {

const ModelConfig& Checked(const ModelConfig& config) {
  ValidateModel(config, FieldReport(
                            [](const auto&, const std::string& message) {
                              Fail(ExitCode::kConfig, "{}", message);
                            },
                            "model"));
  return config;
}

}  // namespace

Model::Model(const ModelConfig& config) : config_(Checked(config)) {
  for (const Side side : architecture().sides()) stacks_.emplace(side, Stack(config_, side));
}

bool Model::ponders() const {
  return std::ranges::any_of(stacks_, [](const auto& stack) { return stack.second.ponders(); });
}

Value Model::EmbeddingTable(const Scope& root) const {
  const double deviation = config_.scaled_embeddings() ? InverseRootOfWidth() : 1;
  return root.Parameter("embedding", {config_.vocabulary_size(), config_.width()},
                        Initializer::Normal(deviation));
}

Value Model::Embed(const Scope& root, Value ids) const {
  const Value rows = syntra::Embed(root, EmbeddingTable(root), ids);
  if (!config_.scaled_embeddings()) return rows;
  return AffineMap(root, rows, 1 / InverseRootOfWidth());
}

StackInput Model::ReadBatch(const Scope& root, Side side, int64_t rows, int64_t length) const {
  const auto input = [&](const char* name) {
    return root.program().Input(fmt::format("{}_{}", NameOf(side), name),
                                {DType::kI32, {rows, length}});
  };
  return {.embedded = Embed(root, input("ids")),
          .segments = input("segments"),
          .positions = stack(side).reads_positions() ? input("positions") : Value{},
          .prefix_ends = config_.bidirectional_prefix() ? input("prefix_ends") : Value{}};
}

StackStep Model::ReadStep(const Scope& root, int64_t rows) const {
  const Value ids = root.program().Input("decoder_ids", {DType::kI32, {rows, 1}});
  return {.embedded = Embed(root, ids),
          .start = root.program().Input("start", {DType::kI32, {1}}),
          .length = 0,
          .memory_segments = {},
          .state = {}};
}

Value Model::OutputTable(const Scope& root) const {
  if (architecture().outputs() == Outputs::kClasses) {
    return root.Parameter("classifier", {config_.classifier().classes(), config_.width()},
                          Initializer::TruncatedNormal(InverseRootOfWidth()));
  }
  if (config_.tied_embeddings()) return EmbeddingTable(root);
  return root.Parameter("output_embedding", {config_.vocabulary_size(), config_.width()},
                        Initializer::TruncatedNormal(InverseRootOfWidth()));
}

double Model::LogitScale() const {
  const bool tied = architecture().outputs() != Outputs::kClasses && config_.tied_embeddings();
  const bool wide = tied && !config_.scaled_embeddings();
  return wide ? InverseRootOfWidth() : 1;
}

int64_t Model::FirstTarget() const { return architecture().outputs() == Outputs::kClasses ? 1 : 0; }

double Model::InverseRootOfWidth() const {
  return 1 / std::sqrt(static_cast<double>(config_.width()));
}

}  // namespace syntra
