// SPDX-License-Identifier: Apache-2.0
// syntra config show|diff|explain
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/config_options.h"
#include "config/explain.h"
#include "config/print.h"

namespace syntra {
namespace {

Action SetUpShow(CLI::App& app) {
  const auto options = AddConfigOptions(app);
  const auto full = std::make_shared<bool>(false);
  app.add_flag("--full", *full,
               "Print every field with its value, not only those that differ from the defaults");
  return [options, full] {
    const Config config = options->Load(kForModel);
    fmt::print("# digest {}\n{}", ConfigDigest(config),
               *full ? FullConfigText(config) : MinimalConfigText(config));
    return ExitCode::kDone;
  };
}

Action SetUpDiff(CLI::App& app) {
  struct Files {
    std::string a, b;
  };
  const auto files = std::make_shared<Files>();
  app.add_option("a", files->a, "First configuration file, or run directory")
      ->required()
      ->type_name("FILE");
  app.add_option("b", files->b, "Second configuration file, or run directory")
      ->required()
      ->type_name("FILE");
  return [files] {
    const auto load = [](const std::string& path) {
      const std::string file = ConfigFileAt(path);
      return LoadConfig(std::span(&file, 1), {}, kForModel);
    };
    const Config a = load(files->a), b = load(files->b);
    for (const std::string& line : ConfigDifferences(a, b)) {
      fmt::print("{}\n", line);
    }
    return ExitCode::kDone;
  };
}

Action SetUpExplain(CLI::App& app) {
  const auto field = std::make_shared<std::string>();
  app.add_option("field", *field,
                 "Field to explain: a dotted path such as optimizer.schedule.rate, a bare name, or "
                 "another program's name for it, such as lr; without it, all fields are listed")
      ->type_name("FIELD");
  return [field] {
    fmt::print("{}", field->empty() ? ExplainAll() : ExplainField(*field));
    return ExitCode::kDone;
  };
}

}  // namespace

Action SetUpConfig(CLI::App& app) {
  return SetUpParts(
      app,
      {{"show", "Print the merged configuration and its digest", SetUpShow, "my.textproto --full"},
       {"diff", "List the fields in which two configurations differ", SetUpDiff,
        "a.textproto b.textproto"},
       {"explain",
        "Print what a field means, its default, its limits, its names in other programs, and "
        "whether it may change when a run continues; without a field, list all",
        SetUpExplain, "optimizer.schedule.rate"}});
}

}  // namespace syntra
