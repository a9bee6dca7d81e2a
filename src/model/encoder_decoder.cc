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
  return root.Parameter("embedding", {config_.vocabulary_size(), config_.width()},
                        {"vocabulary", "embed"}, Initializer::Normal(1));
}

Value EncoderDecoder::Embed(const Scope& root, Value ids) const {
  return syntra::Embed(root, EmbeddingTable(root), ids);
}

Value EncoderDecoder::OutputTable(const Scope& root) const {
  if (config_.tied_embeddings()) return EmbeddingTable(root);
  return root.Parameter(
      "output_embedding", {config_.vocabulary_size(), config_.width()}, {"vocabulary", "embed"},
      Initializer::TruncatedNormal(1 / std::sqrt(static_cast<double>(config_.width()))));
}

double EncoderDecoder::LogitScale() const {
  return config_.tied_embeddings() ? 1 / std::sqrt(static_cast<double>(config_.width())) : 1.0;
}

}  // namespace syntra
