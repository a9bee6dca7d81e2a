// SPDX-License-Identifier: Apache-2.0
// syntra watch: a run's state, redrawn in place.
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "base/clock.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/run_view.h"
#include "cli/screen.h"

namespace syntra {
namespace {

ViewOptions OptionsNow(bool colored) {
  return {.columns = TerminalColumns(STDOUT_FILENO),
          .rows = TerminalRows(STDOUT_FILENO),
          .braille = LocaleIsUtf8(),
          .colored = colored,
          .now = UnixSeconds()};
}

}  // namespace

Action SetUpWatch(CLI::App& app) {
  struct Options {
    std::string directory;
    double every = 2;
    bool once = false;
  };
  const auto options = std::make_shared<Options>();
  app.add_option("directory", options->directory, "Run directory")->required()->type_name("DIR");
  app.add_flag(
      "--once", options->once,
      "Print the status once and exit; the default when standard output is not a terminal");
  app.add_option("--every", options->every, "Seconds between updates")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  return [options] {
    RunWatcher watcher(options->directory);
    const bool colored = WantsColor(STDOUT_FILENO);
    if (options->once || !IsTerminal(STDOUT_FILENO)) {
      const std::vector<std::string> lines = ViewOf(watcher.Look(), OptionsNow(colored));
      fmt::print("{}\n", Join(lines, "\n"));
      return ExitCode::kDone;
    }
    Screen screen;
    do {
      screen.Draw(ViewOf(watcher.Look(), OptionsNow(colored)));
    } while (screen.Wait(options->every));
    return ExitCode::kDone;
  };
}

}  // namespace syntra
