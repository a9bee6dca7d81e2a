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

struct Merged {
  Layer layer;
  Location last_file;  // where a field is missed that is set nowhere
  bool all_read = true;
};

void MergeFiles(std::span<const std::string> files, Merged* merged, Problems* problems) {
  for (const std::string& file : files) {
    merged->last_file = {file, 1, 1};
    Layer layer;
    try {
      ParseLayer(file, ReadWholeFile(file, kMaxFileBytes), &layer, problems);
    } catch (const Error& error) {
      problems->Add({}, error.what());
      merged->all_read = false;
    }
    MergeLayer(layer, &merged->layer);
  }
}

Config Checked(Merged merged, const ConfigPurpose& purpose, Problems* problems) {
  // What an unreadable file would have set is unknown, so complaints about the rest could be wrong.
  if (merged.all_read) Validate(&merged.layer, merged.last_file, purpose, problems);
  problems->ThrowIfAny();
  return merged.layer.config;
}

}  // namespace

Config LoadConfig(std::span<const std::string> files, std::span<const std::string> overrides,
                  const ConfigPurpose& purpose) {
  Problems problems;
  Merged merged;
  MergeFiles(files, &merged, &problems);
  MergeOverrides(overrides, &merged.layer, &problems);
  return Checked(std::move(merged), purpose, &problems);
}

Config ReadUnchecked(std::span<const std::string> files, std::span<const std::string> overrides) {
  Problems ignored;
  Merged merged;
  MergeFiles(files, &merged, &ignored);
  MergeOverrides(overrides, &merged.layer, &ignored);
  return merged.layer.config;
}

Config LoadConfigOver(const BaseConfig& base, std::span<const std::string> files,
                      std::span<const std::string> overrides, const ConfigPurpose& purpose) {
  Problems problems;
  Merged merged;
  ParseLayer(base.source, base.text, &merged.layer, &problems);
  MergeFiles(files, &merged, &problems);
  MergeOverrides(overrides, &merged.layer, &problems);
  return Checked(std::move(merged), purpose, &problems);
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
