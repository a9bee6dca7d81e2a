// SPDX-License-Identifier: Apache-2.0
// Loads and validates a configuration. All errors are collected and thrown as one Error(kConfig),
// whose text is "error: file:line:column: ..." lines and a count.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "configs/schema/config.pb.h"

namespace syntra {

// What a command is going to use. The model and all numbers are always checked; files and required
// fields only where they are needed.
struct ConfigPurpose {
  bool training_data = false;    // data.train
  bool validation_data = false;  // data.validation
  bool tokenizer = false;        // data.tokenizer
  bool run = false;              // train.directory
  bool tasks = false;            // data.task
};
inline constexpr ConfigPurpose kForModel = {};
inline constexpr ConfigPurpose kForTokenizer = {.training_data = true};
inline constexpr ConfigPurpose kForPreparing = {
    .training_data = true, .validation_data = true, .tokenizer = true};
inline constexpr ConfigPurpose kForTraining = {
    .training_data = true, .validation_data = true, .tokenizer = true, .run = true};
inline constexpr ConfigPurpose kForFinetuning = {.run = true, .tasks = true};
inline constexpr ConfigPurpose kForEvaluation = {.validation_data = true, .tokenizer = true};
inline constexpr ConfigPurpose kForGeneration = {.tokenizer = true};

// Text-format files, each laid over the ones before it, then overrides in order: `a.b=value` or
// message text. Scalars and lists replace, messages merge, another kind of a oneof replaces. Paths
// are relative to the working directory.
Config LoadConfig(std::span<const std::string> files, std::span<const std::string> overrides,
                  const ConfigPurpose& purpose);

// Throws ConfigError with what cannot be read: files that are missing, wrong syntax, unknown
// fields.
void CheckReadable(std::span<const std::string> files, std::span<const std::string> overrides);

// What they say as far as it can be read. Nothing is checked, and no error is thrown.
Config ReadUnchecked(std::span<const std::string> files, std::span<const std::string> overrides);

// Text that lies below all files: of a model that a run starts from, whose kinds of mixers stay.
struct BaseConfig {
  std::string source;  // names it in errors
  std::string text;
};
Config LoadConfigOver(const BaseConfig& base, std::span<const std::string> files,
                      std::span<const std::string> overrides, const ConfigPurpose& purpose);

// Text that was saved before, e.g. with a checkpoint, under overrides; `source` names it in errors.
Config ParseConfig(const std::string& source, std::string_view text,
                   std::span<const std::string> overrides, const ConfigPurpose& purpose);

// A configuration made in memory.
void ValidateConfig(const Config& config, const ConfigPurpose& purpose);

}  // namespace syntra
