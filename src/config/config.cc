// SPDX-License-Identifier: Apache-2.0
#include "config/config.h"

#include "base/error.h"
#include "base/file.h"
#include "config/combinations.h"
#include "config/override.h"
#include "config/parser.h"
#include "config/rules.h"

namespace syntra {
namespace {

constexpr int64_t kMaxFileBytes = 1 << 20;

void Validate(Layer* layer, const Location& fallback, const ConfigPurpose& purpose,
              Problems* problems) {
  CheckRules(layer, fallback, purpose, problems);
  CheckCombinations(*layer, fallback, problems);
}

void MergeOverrides(std::span<const std::string> overrides, Layer* merged, Problems* problems) {
  for (const std::string& assignment : overrides) {
    Layer layer;
    ParseOverride(assignment, *merged, &layer, problems);
    MergeLayer(layer, merged);
  }
}

}  // namespace

Config LoadConfig(std::span<const std::string> files, std::span<const std::string> overrides,
                  const ConfigPurpose& purpose) {
  Problems problems;
  Layer merged;
  Location fallback;
  bool all_read = true;
  for (const std::string& file : files) {
    fallback = {file, 1, 1};
    Layer layer;
    try {
      ParseLayer(file, ReadWholeFile(file, kMaxFileBytes), &layer, &problems);
    } catch (const Error& error) {
      problems.Add({}, error.what());
      all_read = false;
    }
    MergeLayer(layer, &merged);
  }
  MergeOverrides(overrides, &merged, &problems);
  // What an unreadable file would have set is unknown, so complaints about the rest could be wrong.
  if (all_read) Validate(&merged, fallback, purpose, &problems);
  problems.ThrowIfAny();
  return merged.config;
}

Config ParseConfig(const std::string& source, std::string_view text,
                   std::span<const std::string> overrides, const ConfigPurpose& purpose) {
  Problems problems;
  Layer merged;
  ParseLayer(source, text, &merged, &problems);
  MergeOverrides(overrides, &merged, &problems);
  Validate(&merged, {source, 1, 1}, purpose, &problems);
  problems.ThrowIfAny();
  return merged.config;
}

void ValidateConfig(const Config& config, const ConfigPurpose& purpose) {
  Problems problems;
  Layer layer;
  layer.config = config;
  Validate(&layer, {"configuration"}, purpose, &problems);
  problems.ThrowIfAny();
}

}  // namespace syntra
