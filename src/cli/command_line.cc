#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/crash_guard.h"
#include "base/failure.h"
#include "base/output.h"
#include "base/text.h"
#include "cli/commands.h"

namespace syntra {
namespace {

// The innermost command that was named.
const CLI::App& Chosen(const CLI::App& root) {
  const CLI::App* app = &root;
  while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
  return *app;
}

std::string FullName(const CLI::App& app) {
  return app.get_parent() ? FullName(*app.get_parent()) + " " + app.get_name() : app.get_name();
}

// Names that could stand where `app` found something unknown.
std::vector<std::string> KnownNames(const CLI::App& app, bool options) {
  std::vector<std::string> names;
  if (options) {
    for (const CLI::Option* option : app.get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  } else {
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
      names.push_back(command->get_name());
    }
  }
  return names;
}

// What is wrong with the command line, and what was probably meant.
std::string UsageMessage(const CLI::App& root, const CLI::ParseError& error) {
  const CLI::App& app = Chosen(root);
  const std::string name = FullName(app);
  const std::vector<std::string> extras = root.remaining(true);
  if (extras.empty()) {
    if (dynamic_cast<const CLI::RequiredError*>(&error) && !KnownNames(app, false).empty()) {
      return fmt::format("{} needs a command: {}", name, Join(KnownNames(app, false), ", "));
    }
    return error.what();
  }
  const std::string unknown = extras.front().substr(0, extras.front().find('='));
  const bool is_option = unknown.starts_with('-');
  const std::vector<std::string> known = KnownNames(app, is_option);
  const char* kind = is_option ? "option" : known.empty() ? "argument" : "command";
  return fmt::format("{} has no {} \"{}\"{}", name, kind, unknown, DidYouMean(unknown, known));
}

ExitCode ParseAndRun(int argc, const char* const* argv) {
  CLI::App root("Syntra pretrains T5-style encoder-decoders with synthetic attention.", "syntra");
  root.set_version_flag("--version", "syntra " SYNTRA_VERSION);
  root.require_subcommand(1);
  std::vector<std::pair<CLI::App*, Action>> commands;
  for (const Command& command : kCommands) {
    CLI::App* app = root.add_subcommand(command.name, command.summary);
    commands.emplace_back(app, command.set_up(*app));
  }
  try {
    root.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      root.exit(error);  // --help and --version
      return ExitCode::kDone;
    }
    PrintError(fmt::format("{}\n\"{} --help\" tells more", UsageMessage(root, error),
                           FullName(Chosen(root))));
    return ExitCode::kConfig;
  }
  for (const auto& [app, action] : commands) {
    if (app->parsed()) return action();
  }
  return ExitCode::kInternal;  // require_subcommand lets none through
}

}  // namespace

int RunCommandLine(int argc, const char* const* argv) {
  InstallCrashHandlers(SYNTRA_VERSION);
  try {
    const ExitCode code = ParseAndRun(argc, argv);
    FlushOutput();
    return static_cast<int>(code);
  } catch (...) {
    EndIfReaderIsGone();
    const Failure failure = CurrentFailure();
    PrintError(failure.message);
    return static_cast<int>(failure.code);
  }
}

}  // namespace syntra
