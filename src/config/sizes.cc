// SPDX-License-Identifier: Apache-2.0
#include "config/sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "mixers/mixer.h"
#include "model/architecture.h"

namespace syntra {
namespace {

// Far above what any machine can train, and far below where sizes could no longer be counted.
constexpr int64_t kMostTokens = int64_t{1} << 30;
constexpr double kMostActivations = 0x1p50;

struct LengthField {
  const char* field;
  int64_t length;
};

// Targets that follow from the inputs are about as long at most.
LengthField LongerSide(const DataConfig& data) {
  if (data.target_length() > data.input_length()) {
    return {"data.target_length", data.target_length()};
  }
  return {"data.input_length", data.input_length()};
}

void CheckTokens(const Config& config, const FieldReport& report) {
  const LengthField longer = LongerSide(config.data());
  const auto check = [&](const char* field, int64_t rows) {
    const int64_t tokens = rows * longer.length;
    if (tokens <= kMostTokens) return;
    report.Add({field, longer.field},
               fmt::format("{} {} of {} {} gives {} tokens; at most {} are allowed", field, rows,
                           longer.field, longer.length, WithThousands(tokens),
                           WithThousands(kMostTokens)));
  };
  check("train.batch_size", config.train().batch_size());
  check("evaluation.batch_size", config.evaluation().batch_size());
}

// The vectors that the layers hold for every token; fields by whole path.
std::vector<TokenVector> VectorsOfAToken(const ModelConfig& model) {
  std::vector<TokenVector> vectors = {{model.width(), {"model.width"}}};
  const auto add = [&](const TokenMixer& mixer, const std::string& path) {
    for (TokenVector& vector : mixer.traits().per_token) {
      for (std::string& field : vector.fields) field = FieldPath(path, field);
      vectors.push_back(std::move(vector));
    }
  };
  if (HasCrossAttention(model)) {
    add(*MakeCrossMixer(model.cross_attention()), "model.cross_attention");
  }
  for (const Side side : ArchitectureOf(model).sides()) {
    for (const LayerGroup& group : LayersOf(model, side)) {
      vectors.push_back(
          {group.feed_forward.width(), {"model." + group.feed_forward_path + ".width"}});
      add(*MakeMixer(group.mixer), "model." + group.mixer_kind_path());
    }
  }
  return vectors;
}

// The fields that say how many layers there are.
std::vector<std::string> LayerFields(const ModelConfig& model) {
  std::vector<std::string> fields;
  for (const Side side : ArchitectureOf(model).sides()) {
    for (const LayerGroup& group : LayersOf(model, side)) {
      fields.push_back("model." + group.repeat_path);
    }
  }
  return fields;
}

void CheckActivations(const Config& config, const FieldReport& report) {
  const int64_t layers =
      LayerCount(config.model(), Side::kEncoder) + LayerCount(config.model(), Side::kDecoder);
  const bool cut = config.train().micro_batch_size() > 0;
  const int64_t rows = cut ? config.train().micro_batch_size() : config.train().batch_size();
  const LengthField longer = LongerSide(config.data());
  const double tokens = static_cast<double>(rows) * static_cast<double>(longer.length);
  const std::vector<TokenVector> vectors = VectorsOfAToken(config.model());
  const TokenVector& widest = *std::ranges::max_element(vectors, {}, &TokenVector::elements);
  if (tokens * static_cast<double>(widest.elements) * static_cast<double>(layers) <=
      kMostActivations) {
    return;
  }
  std::vector<std::string> fields = widest.fields;
  const std::string rows_field = cut ? "train.micro_batch_size" : "train.batch_size";
  fields.push_back(longer.field);
  std::ranges::copy(LayerFields(config.model()), std::back_inserter(fields));
  fields.push_back(rows_field);
  report.Add(fields, fmt::format("{} {} of {} {} in {} layers with {} elements a token ({}) are "
                                 "more than 2^50 values; lower one of them",
                                 rows_field, rows, longer.field, longer.length, layers,
                                 WithThousands(widest.elements), Join(widest.fields, ", ")));
}

}  // namespace

void CheckSizes(const Config& config, const FieldReport& report) {
  CheckTokens(config, report);
  CheckActivations(config, report);
}

}  // namespace syntra
