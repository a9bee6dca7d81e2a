// SPDX-License-Identifier: Apache-2.0
#include "decode/strategy.h"

#include "base/name_table.h"
#include "configs/schema/kind_of.h"

namespace syntra {

#define SYNTRA_STRATEGY(name) std::unique_ptr<Strategy> strategy_##name(const DecodingConfig&);
#include "decode/strategies.def"
#undef SYNTRA_STRATEGY

namespace {

using Make = std::unique_ptr<Strategy> (*)(const DecodingConfig&);

const NameTable<Make>& Strategies() {
  static const NameTable<Make> table = [] {
    NameTable<Make> strategies("decoding strategy");
#define SYNTRA_STRATEGY(name) strategies.Add(#name, &strategy_##name);
#include "decode/strategies.def"
#undef SYNTRA_STRATEGY
    return strategies;
  }();
  return table;
}

}  // namespace

std::string StrategyName(const DecodingConfig& config) {
  const std::string name = KindOf(config, "strategy");
  return name.empty() ? "greedy" : name;
}

std::vector<std::string> StrategyNames() { return Strategies().Names(); }

std::unique_ptr<Strategy> MakeStrategy(const DecodingConfig& config) {
  return Strategies().Get(StrategyName(config))(config);
}

}  // namespace syntra
