// SPDX-License-Identifier: Apache-2.0
#include "config/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "config/combinations.h"
#include "config/override.h"
#include "config/parser.h"
#include "config/rules.h"
#include "model/layers.h"

namespace syntra {
namespace {

constexpr uint64_t kMaxFileBytes = 1 << 20;

void Validate(Layer* layer, const Location& fallback, const ConfigPurpose& purpose,
              Problems* problems) {
  CheckRules(layer, fallback, purpose, problems);
  CheckCombinations(*layer, fallback, problems);
}

struct Merged {
  Layer layer;
  Location last_file;  // where a field is missed that is set nowhere
  bool all_read = true;
};

// False if nothing could be made of it.
bool ParseFile(const std::string& file, Layer* layer, Problems* problems) {
  std::error_code unknown;
  const auto bytes = std::filesystem::file_size(file, unknown);
  if (!unknown && bytes > kMaxFileBytes) {
    problems->Add({file}, NoConfigurationMessage(file, "it is larger than 1 MiB"));
    return false;
  }
  try {
    return ParseLayer(file, ReadWholeFile(file, kMaxFileBytes, ExitCode::kConfig), layer, problems);
  } catch (const Error& error) {
    if (error.code() != ExitCode::kConfig) throw;  // a failing disk, a lack of memory
    problems->Add({}, error.what());
    return false;
  }
}

// Lays the files over what was merged before, then the overrides.
void Merge(std::span<const std::string> files, std::span<const std::string> overrides,
           Merged* merged, Problems* problems) {
  for (const std::string& file : files) {
    merged->last_file = {file, 1, 1};
    Layer layer;
    if (!ParseFile(file, &layer, problems)) merged->all_read = false;
    MergeLayer(layer, &merged->layer);
  }
  for (const std::string& assignment : overrides) {
    Layer layer;
    ParseOverride(assignment, merged->layer, &layer, problems);
    MergeLayer(layer, &merged->layer);
  }
}

Config Checked(Merged merged, const ConfigPurpose& purpose, Problems* problems) {
  // Nobody knows what an unreadable file would have set, so complaints about the rest could be
  // wrong.
  if (merged.all_read) Validate(&merged.layer, merged.last_file, purpose, problems);
  problems->ThrowIfAny();
  Config& config = merged.layer.config;
  if (config.model().has_attention_dropout()) SpreadAttentionDropout(config.mutable_model());
  return config;
}

// The parameters that a kind of mixer has learned mean nothing to another kind.
void CheckKeepsMixers(const BaseConfig& base, const ModelConfig& start, const Layer& merged,
                      Problems* problems) {
  const auto kind_of = [](const LayerGroup& group) { return MixerKind(group.mixer); };
  for (const Side side : {Side::kEncoder, Side::kDecoder}) {
    const std::vector<LayerGroup> before = LayersOf(start, side),
                                  now = LayersOf(merged.config.model(), side);
    // Lists are compared group by group, which is enough to see that another model was meant.
    for (size_t i = 0; i < std::min(before.size(), now.size()); ++i) {
      if (kind_of(before[i]) == kind_of(now[i])) continue;
      const std::string path = "model." + now[i].mixer_path;
      AddFieldProblem(
          merged, {base.source}, path,
          fmt::format("{} is {}, but {} has {} (model.{}); leave {} out, and it is that "
                      "of the start",
                      path, kind_of(now[i]), base.source, kind_of(before[i]), before[i].mixer_path,
                      path),
          problems);
      return;
    }
  }
}

}  // namespace

Config LoadConfig(std::span<const std::string> files, std::span<const std::string> overrides,
                  const ConfigPurpose& purpose) {
  Problems problems;
  Merged merged;
  Merge(files, overrides, &merged, &problems);
  return Checked(std::move(merged), purpose, &problems);
}

void CheckReadable(std::span<const std::string> files, std::span<const std::string> overrides) {
  Problems problems;
  Merged merged;
  Merge(files, overrides, &merged, &problems);
  problems.ThrowIfAny();
}

Config ReadUnchecked(std::span<const std::string> files, std::span<const std::string> overrides) {
  Problems ignored;
  Merged merged;
  Merge(files, overrides, &merged, &ignored);
  return merged.layer.config;
}

Config LoadConfigOver(const BaseConfig& base, std::span<const std::string> files,
                      std::span<const std::string> overrides, const ConfigPurpose& purpose) {
  Problems problems;
  Merged merged;
  merged.all_read = ParseLayer(base.source, base.text, &merged.layer, &problems);
  const Config start = merged.layer.config;
  Merge(files, overrides, &merged, &problems);
  if (start.has_model()) CheckKeepsMixers(base, start.model(), merged.layer, &problems);
  return Checked(std::move(merged), purpose, &problems);
}

Config ParseConfig(const std::string& source, std::string_view text,
                   std::span<const std::string> overrides, const ConfigPurpose& purpose) {
  Problems problems;
  Merged merged;
  merged.last_file = {source, 1, 1};
  merged.all_read = ParseLayer(source, text, &merged.layer, &problems);
  Merge({}, overrides, &merged, &problems);
  return Checked(std::move(merged), purpose, &problems);
}

void ValidateConfig(const Config& config, const ConfigPurpose& purpose) {
  Problems problems;
  Layer layer;
  layer.config = config;
  Validate(&layer, {"configuration"}, purpose, &problems);
  problems.ThrowIfAny();
}

}  // namespace syntra
