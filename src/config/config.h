// SPDX-License-Identifier: Apache-2.0
// Loads and validates a configuration. All errors are collected and thrown as one Error(kConfig),
// whose text is "error: file:line:column: ..." lines and a count.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "configs/schema/config.pb.h"

namespace syntra {

// The parts of a configuration that a command is going to use. The model and all numbers are always
// checked; files and required fields only where a command needs them.
struct ConfigPurpose {
  bool training_data = false;    // data.train
  bool validation_data = false;  // data.validation
  bool tokenizer = false;        // data.tokenizer
  bool run = false;              // train.directory
};
inline constexpr ConfigPurpose kForModel = {};
inline constexpr ConfigPurpose kForPreparing = {
    .training_data = true, .validation_data = true, .tokenizer = true};
inline constexpr ConfigPurpose kForTraining = {
    .training_data = true, .validation_data = true, .tokenizer = true, .run = true};
inline constexpr ConfigPurpose kForFinetuning = {.run = true};
inline constexpr ConfigPurpose kForEvaluation = {.validation_data = true, .tokenizer = true};
inline constexpr ConfigPurpose kForGeneration = {.tokenizer = true};

// Loads text-format files, each laid over the ones before it, then applies overrides in order:
// `a.b=value` or message text. Scalars and lists replace, messages merge, another kind of a oneof
// replaces. Paths are relative to the working directory.
Config LoadConfig(std::span<const std::string> files, std::span<const std::string> overrides,
                  const ConfigPurpose& purpose);

// Throws ConfigError that lists what cannot be read: missing files, wrong syntax, unknown fields.
void CheckReadable(std::span<const std::string> files, std::span<const std::string> overrides);

// Reads files and overrides as far as they can be read. Checks nothing and throws no error.
Config ReadUnchecked(std::span<const std::string> files, std::span<const std::string> overrides);

// Text that lies below all files: the configuration of a model that a run starts from, whose kinds
// of mixers are kept.
struct BaseConfig {
  std::string source;  // names the text in errors
  std::string text;
};
Config LoadConfigOver(const BaseConfig& base, std::span<const std::string> files,
                      std::span<const std::string> overrides, const ConfigPurpose& purpose);

// Parses text that was saved before, for example with a checkpoint, and applies overrides; `source`
// names it in errors.
Config ParseConfig(const std::string& source, std::string_view text,
                   std::span<const std::string> overrides, const ConfigPurpose& purpose);

// Checks a configuration that was made in memory.
void ValidateConfig(const Config& config, const ConfigPurpose& purpose);

}  // namespace syntra
