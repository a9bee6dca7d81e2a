// SPDX-License-Identifier: Apache-2.0
#include "mixers/relative_bias.h"

#include <fmt/format.h>

#include "kernels/math/relative_bucket.h"

namespace syntra {

Value RelativeBias(const Scope& scope, const std::string& name, const RelativeBiasConfig& config,
                   int64_t heads, const BiasExtent& extent) {
  const int64_t buckets = config.buckets();
  const Value table =
      scope.Parameter(name, {heads, buckets}, Initializer::GlorotUniform(heads, buckets));
  return scope.One("relative_bias",
                   {{"queries", extent.queries},
                    {"keys", extent.keys},
                    {"bidirectional", !extent.causal},
                    {"max_distance", int64_t{config.max_distance()}}},
                   {table, extent.query_start});
}

int64_t BiasReach(const RelativeBiasConfig& config, bool causal) {
  return T5Buckets(config.buckets(), !causal, config.max_distance()).Reach();
}

void ValidateRelativeBias(const RelativeBiasConfig& config, const FieldReport& report) {
  const std::string buckets = report.Path("buckets"), distance = report.Path("max_distance");
  if (config.buckets() % 2 != 0) {
    report.Add({buckets},
               fmt::format("{} {} must be even: the encoder uses half for each direction", buckets,
                           config.buckets()));
  } else if (config.max_distance() <= config.buckets() / 2) {
    report.Add({distance, buckets}, fmt::format("{} {} must be larger than half of buckets {}",
                                                distance, config.max_distance(), config.buckets()));
  }
}

}  // namespace syntra
