// SPDX-License-Identifier: Apache-2.0
#include "cli/config_options.h"

#include <CLI/CLI.hpp>

#include "base/file.h"
#include "base/text.h"
#include "run/run_history.h"
#include "train/run_directory.h"

namespace syntra {

std::string ConfigFileAt(const std::string& path) {
  if (!IsDirectory(path)) return path;
  const Path file = RunDirectory{path}.config();
  if (!Exists(file)) FailNoRun(path, file.filename().string());
  return file.string();
}

std::vector<std::string> ConfigOptions::Files() const {
  std::vector<std::string> files;
  auto next_named = named_files.begin(), next_unnamed = unnamed_files.begin();
  const auto add = [&](const std::string& path) { files.push_back(ConfigFileAt(path)); };
  for (const std::string& file : unnamed_files) {
    if (file.find('=') == file.npos || Exists(file)) continue;
    if (file.starts_with('=')) {
      Fail(ExitCode::kConfig, "\"{}\" stands alone; write --set FIELD=VALUE without spaces",
           Printable(file));
    }
    Fail(ExitCode::kConfig, "{} is not a file; to set a field, write --set {}", Printable(file),
         ShellWord(Printable(file)));
  }
  for (const CLI::Option* option : app->parse_order()) {
    if (option == named) add(*next_named++);
    if (option == unnamed) add(*next_unnamed++);
  }
  return files;
}

void ConfigOptions::RequireAny() const {
  if (!Files().empty() || !overrides.empty()) return;
  Fail(ExitCode::kConfig, "no configuration; give a file, e.g. my.textproto");
}

void ConfigOptions::RequireOwnDirectory() const {
  std::string run;
  std::vector<std::string> others;
  for (const auto* files : {&unnamed_files, &named_files}) {
    for (const std::string& file : *files) {
      if (IsDirectory(file)) {
        run = file;
      } else {
        others.push_back(file);
      }
    }
  }
  if (run.empty() || ReadUnchecked(others, overrides).train().has_directory()) return;
  const std::string recorded = ReadUnchecked(Files(), overrides).train().directory();
  std::error_code code;
  if (std::filesystem::equivalent(recorded, run, code)) return;
  Fail(ExitCode::kConfig,
       "the run in {} recorded train.directory {}, which is not this directory (it was moved, or "
       "the path is relative to another one): to continue this run, add --set {}; to begin another "
       "one, set it to a new directory",
       run, recorded, ShellWord("train.directory=" + run));
}

Config ConfigOptions::Load(const ConfigPurpose& purpose) const {
  RequireAny();
  if (purpose.run) RequireOwnDirectory();
  return LoadConfig(Files(), overrides, purpose);
}

std::shared_ptr<ConfigOptions> AddConfigOptions(CLI::App& app) {
  auto options = std::make_shared<ConfigOptions>();
  options->app = &app;
  options->unnamed =
      app.add_option("file", options->unnamed_files,
                     "Configuration file, or a run directory for the configuration that "
                     "the run recorded; later ones override earlier ones")
          ->type_name("FILE");
  options->named = Repeatable(app.add_option("--config", options->named_files,
                                             "Configuration file, the same as FILE"))
                       ->type_name("FILE");
  Repeatable(app.add_option("--set", options->overrides,
                            "Set one field, e.g. --set train.steps=1000; \"syntra config "
                            "explain\" lists all fields"))
      ->type_name("FIELD=VALUE");
  return options;
}

std::shared_ptr<ReportOptions> AddReportOptions(CLI::App& app) {
  auto options = std::make_shared<ReportOptions>();
  app.add_flag("--json", options->json, "Print JSON");
  app.add_option("--ranks", options->ranks, "Ranks that share the batch")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  return options;
}

}  // namespace syntra
