// SPDX-License-Identifier: Apache-2.0
#include "data/objective.h"

#include "base/error.h"
#include "base/name_table.h"
#include "configs/schema/config.pb.h"

namespace syntra {

#define SYNTRA_OBJECTIVE(name) \
  std::unique_ptr<Objective> objective_##name(const ObjectiveSettings& settings);
#define SYNTRA_CORPUS_OBJECTIVE(kind, name) SYNTRA_OBJECTIVE(name)
#include "data/objectives.def"
#undef SYNTRA_CORPUS_OBJECTIVE
#undef SYNTRA_OBJECTIVE

namespace {

using Make = std::unique_ptr<Objective> (*)(const ObjectiveSettings& settings);

const NameTable<Make>& Objectives() {
  static const NameTable<Make> table = [] {
    NameTable<Make> objectives("objective");
#define SYNTRA_OBJECTIVE(name) objectives.Add(#name, &objective_##name);
#define SYNTRA_CORPUS_OBJECTIVE(kind, name) SYNTRA_OBJECTIVE(name)
#include "data/objectives.def"
#undef SYNTRA_CORPUS_OBJECTIVE
#undef SYNTRA_OBJECTIVE
    return objectives;
  }();
  return table;
}

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
  return Objectives().Get(name)(settings);
}

std::string ObjectiveOfCorpus(const DataConfig& config) {
  switch (config.objective()) {
#define SYNTRA_OBJECTIVE(name)
#define SYNTRA_CORPUS_OBJECTIVE(kind, name) \
  case DataConfig::kind:                    \
    return #name;
#include "data/objectives.def"
#undef SYNTRA_CORPUS_OBJECTIVE
#undef SYNTRA_OBJECTIVE
  }
  SYNTRA_CHECK(false, "no objective {}", static_cast<int>(config.objective()));
}

}  // namespace syntra
