// SPDX-License-Identifier: Apache-2.0
// syntra manual [COMMAND...]: manual pages in roff, made from the commands' own help.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>

#include "base/file.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/environment.h"
#include "cli/option_help.h"

namespace syntra {
namespace {

struct ExitStatus {
  ExitCode code;
  const char* meaning;
};

constexpr std::array kExitStatuses{
    ExitStatus{ExitCode::kDone, "done"},
    ExitStatus{
        ExitCode::kConfig,
        "usage or configuration, or a corpus, tokenizer, run or checkpoint that is named and does "
        "not exist"},
    ExitStatus{ExitCode::kData,
               "data: a corpus, tokenizer or task that cannot be used, or missing files of a task"},
    ExitStatus{ExitCode::kResources, "resources: disk, memory, permissions, missing packages"},
    ExitStatus{ExitCode::kCheckpoint,
               "checkpoints: none is usable, it was made with other settings or data, or it cannot "
               "be written"},
    ExitStatus{ExitCode::kDiverged, "training cannot make progress; do not requeue"},
    ExitStatus{ExitCode::kPeerLost, "another rank died or hangs"},
    ExitStatus{ExitCode::kLocked, "another run owns the directory"},
    ExitStatus{ExitCode::kInternal, "a bug in this program"},
    ExitStatus{ExitCode::kRequeue,
               "stopped on request, nothing that was trained is lost; run the same command again"},
};

// Text of any kind as roff shows it: backslashes, hyphens that can be copied, and no line that
// begins with a control character.
std::string Roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if ((out.empty() || out.back() == '\n') && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\' || c == '-') out += '\\';
    out += c == '\\' ? 'e' : c;
  }
  return out;
}

// "--config FILE ...".
std::string Usage(const CLI::Option& option) {
  const std::string value = OptionValue(option);
  return option.get_name(option.get_positional(), true) + (value.empty() ? "" : " " + value);
}

std::string OptionEntries(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    text += fmt::format(".TP\n.B {}\n{}\n", Roff(Usage(*option)), Roff(MeaningOf(*option)));
  }
  return text;
}

std::string CommandEntries(const CLI::App& app) {
  std::string text;
  for (const CLI::App* command : InnerCommands(app)) {
    text += fmt::format(".TP\n.B {}\n{}\n", Roff(command->get_name()),
                        Roff(command->get_description()));
  }
  return text;
}

std::string ExitStatusSection() {
  std::string text = ".SH EXIT STATUS\n";
  for (const ExitStatus& status : kExitStatuses) {
    text += fmt::format(".TP\n.B {}\n{}\n", static_cast<int>(status.code), Roff(status.meaning));
  }
  return text;
}

std::string EnvironmentSection() {
  std::string text = ".SH ENVIRONMENT\n";
  for (const EnvironmentVariable& variable : EnvironmentVariables()) {
    text += fmt::format(".TP\n.B {}\n{}\n", Roff(variable.name), Roff(variable.meaning));
  }
  return text;
}

// "syntra-config".
std::string PageName(const CLI::App& app) {
  return app.get_parent() ? PageName(*app.get_parent()) + "-" + app.get_name() : app.get_name();
}

std::string SeeAlsoSection(const CLI::App& app) {
  std::vector<std::string> pages;
  if (const CLI::App* parent = app.get_parent()) {
    pages.push_back(fmt::format(".BR {} (1)", Roff(PageName(*parent))));
  } else {
    for (const CLI::App* command : InnerCommands(app)) {
      pages.push_back(fmt::format(".BR {} (1)", Roff(PageName(*command))));
    }
  }
  return ".SH SEE ALSO\n" + Join(pages, ",\n") + "\n";
}

// A command's page; the commands within it have sections of their own.
std::string Page(const CLI::App& app) {
  const std::string name = PageName(app), command = FullName(app);
  std::string text = fmt::format(
      ".TH {} 1 \"\" \"syntra {}\" \"Syntra\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n.B {}\n{}\n",
      Roff(name), Roff(Version()), Roff(name), Roff(app.get_description()), Roff(command),
      Roff(ArgumentsOf(app)));
  if (const std::string footer = app.get_footer(); !footer.empty()) {
    text += ".SH DESCRIPTION\n.nf\n" + Roff(footer) + "\n.fi\n";
  }
  if (const std::string commands = CommandEntries(app); !commands.empty()) {
    text += ".SH COMMANDS\n" + commands;
  }
  text += ".SH OPTIONS\n" + OptionEntries(app);
  if (app.get_parent()) {
    for (const CLI::App* inner : InnerCommands(app)) {
      text += fmt::format(".SH OPTIONS OF {}\n", Roff(FullName(*inner))) + OptionEntries(*inner);
    }
  }
  return text + ExitStatusSection() + EnvironmentSection() + SeeAlsoSection(app);
}

const CLI::App& FindCommand(const CLI::App& app, const std::string& name) {
  std::vector<std::string> known;
  for (const CLI::App* command : InnerCommands(app)) {
    if (command->get_name() == name) return *command;
    known.push_back(command->get_name());
  }
  Fail(ExitCode::kConfig, "{} has no command \"{}\"{}", FullName(app), name,
       DidYouMean(name, known));
}

void WritePages(const CLI::App& root, const Path& directory) {
  CreateDirectories(directory);
  std::vector<const CLI::App*> all = InnerCommands(root);
  all.push_back(&root);
  for (const CLI::App* app : all) {
    ReplaceFileDurably(directory / (PageName(*app) + ".1"), Page(*app));
  }
}

}  // namespace

Action SetUpManual(CLI::App& app) {
  struct Options {
    std::vector<std::string> command;  // {"inspect", "data"}
    std::string directory;
  };
  const auto options = std::make_shared<Options>();
  app.add_option("command", options->command,
                 "Command whose page to print; by default, that of syntra itself");
  app.add_option("--write", options->directory, "Write all pages to this directory instead")
      ->type_name("DIR");
  return [options, &app] {
    const CLI::App* shown = app.get_parent();
    if (!options->directory.empty()) {
      WritePages(*shown, options->directory);
    } else {
      for (const std::string& name : options->command) shown = &FindCommand(*shown, name);
      fmt::print("{}", Page(*shown));
    }
    return ExitCode::kDone;
  };
}

}  // namespace syntra
