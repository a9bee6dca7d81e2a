// SPDX-License-Identifier: Apache-2.0
#include "data/objective.h"

#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "configs/schema/config.pb.h"

namespace syntra {
namespace {

struct Row {
  std::string_view name;
  std::unique_ptr<Objective> (*make)(const ObjectiveSettings& settings);
  std::optional<DataConfig::Objective> of_corpora;  // of text
};

// An objective is a row here and a file of its own (README.md, "Adding an objective").
constexpr Row kObjectives[] = {
    {"causal_lm", MakeCausalLm, DataConfig::CAUSAL_LM},
    {"classification", MakeClassification, std::nullopt},
    {"masked_lm", MakeMaskedLm, DataConfig::MASKED_LM},
    {"prefix_lm", MakePrefixLm, DataConfig::PREFIX_LM},
    {"span_corruption", MakeSpanCorruption, DataConfig::SPAN_CORRUPTION},
    {"text_to_text", MakeTextToText, std::nullopt},
};

}  // namespace

ObjectiveSettings ObjectiveSettings::From(const DataConfig& config, const Tokenizer& tokenizer) {
  CheckHasEos(tokenizer);
  return {.row = RowLengths(config),
          .noise_density = config.noise_density(),
          .mean_span_length = config.mean_span_length(),
          .first_sentinel = tokenizer.SentinelId(0),
          .sentinels = tokenizer.extra_ids(),
          .eos = tokenizer.eos_id()};
}

std::unique_ptr<Objective> MakeObjective(std::string_view name, const ObjectiveSettings& settings) {
  for (const Row& row : kObjectives) {
    if (row.name == name) return row.make(settings);
  }
  Fail(ExitCode::kConfig, "unknown objective \"{}\"{}", name, DidYouMean(name, ObjectiveNames()));
}

std::string ObjectiveOfCorpus(const DataConfig& config) {
  for (const Row& row : kObjectives) {
    if (row.of_corpora == config.objective()) return std::string(row.name);
  }
  SYNTRA_CHECK(false, "no objective {}", DataConfig::Objective_Name(config.objective()));
}

std::vector<std::string> ObjectiveNames() {
  std::vector<std::string> names;
  for (const Row& row : kObjectives) names.emplace_back(row.name);
  return names;
}

}  // namespace syntra
