// SPDX-License-Identifier: Apache-2.0
#include "model/encoder_decoder.h"

#include <cmath>

#include "nn/layers.h"

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

EncoderDecoder::EncoderDecoder(const ModelConfig& config)
    : config_(Checked(config)),
      encoder_(config_, Side::kEncoder),
      decoder_(config_, Side::kDecoder) {}

Value EncoderDecoder::EmbeddingTable(const Scope& root) const {
  const double deviation = config_.scaled_embeddings() ? InverseRootOfWidth() : 1;
  return root.Parameter("embedding", {config_.vocabulary_size(), config_.width()},
                        {"vocabulary", "embed"}, Initializer::Normal(deviation));
}

Value EncoderDecoder::Embed(const Scope& root, Value ids) const {
  const Value rows = syntra::Embed(root, EmbeddingTable(root), ids);
  if (!config_.scaled_embeddings()) return rows;
  return root.One("affine", {{"scale", 1 / InverseRootOfWidth()}, {"shift", 0.0}}, {rows});
}

Value EncoderDecoder::OutputTable(const Scope& root) const {
  if (config_.tied_embeddings()) return EmbeddingTable(root);
  return root.Parameter("output_embedding", {config_.vocabulary_size(), config_.width()},
                        {"vocabulary", "embed"},
                        Initializer::TruncatedNormal(InverseRootOfWidth()));
}

double EncoderDecoder::LogitScale() const {
  const bool wide = config_.tied_embeddings() && !config_.scaled_embeddings();
  return wide ? InverseRootOfWidth() : 1;
}

double EncoderDecoder::InverseRootOfWidth() const {
  return 1 / std::sqrt(static_cast<double>(config_.width()));
}

}  // namespace syntra
