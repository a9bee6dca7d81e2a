// SPDX-License-Identifier: Apache-2.0
#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/crash_guard.h"
#include "base/failure.h"
#include "base/home.h"
#include "base/json.h"
#include "base/output.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/environment.h"
#include "cli/option_help.h"
#include "cli/ranks.h"
#include "config/problem.h"
#include "config/suggest.h"
#include "dist/launch.h"

namespace syntra {
namespace {

// The innermost command that was named.
const CLI::App& Chosen(const CLI::App& root) {
  const CLI::App* app = &root;
  while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
  return *app;
}

// Names that could stand where `app` found something unknown.
std::vector<std::string> KnownNames(const CLI::App& app, bool options) {
  std::vector<std::string> names;
  if (options) {
    for (const CLI::Option* option : app.get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  } else {
    for (const CLI::App* command : InnerCommands(app)) {
      names.push_back(command->get_name());
    }
  }
  return names;
}

// What to write if "--steps 5" or "--train.steps=5" means a field of the configuration.
std::string HowToSet(const CLI::App& app, const std::string& argument) {
  constexpr size_t kMostNamed = 3;
  if (!argument.starts_with("--") || !app.get_option_no_throw("--set")) return "";
  const size_t equals = std::min(argument.find('='), argument.size());
  const std::string name = argument.substr(2, equals - 2);
  std::vector<std::string> fields = FieldsMeant(name);
  if (fields.empty() || fields.size() > kMostNamed) return "";
  const std::string value = equals < argument.size() ? argument.substr(equals) : "=...";
  for (std::string& field : fields) {
    field = "--set " + ShellWord(field + value) + NoteOf(field, name);
  }
  return "to set a field of the configuration: " + Join(fields, " or ");
}

// What was meant by `argument`, whose name is `unknown`: the option or command that has this name
// with or without dashes, or almost this name; or the field of exactly this name.
std::string Meant(const CLI::App& app, const std::string& argument, const std::string& unknown,
                  const std::vector<std::string>& known) {
  const bool is_option = unknown.starts_with("--");
  const std::string option = "--" + unknown;  // of "help" and "version"
  if (app.get_option_no_throw(option)) return fmt::format("; did you mean \"{}\"?", option);
  if (is_option && app.get_option_no_throw(unknown.substr(2))) {
    return fmt::format("; write what it names without \"{}\"", unknown);
  }
  const std::string like = DidYouMean(unknown, known), field = HowToSet(app, argument);
  if (field.empty()) return like;
  const bool is_near = !like.empty() && EditDistance(unknown, NearestName(unknown, known)) == 1;
  return is_near ? like + " Or, " + field : "; " + field;
}

// The command that other programs call `name`, or that has this name inside another one.
std::string CommandCalled(const CLI::App& root, const std::string& name) {
  if (name.empty()) return "";
  for (const Command& command : kCommands) {
    const std::vector<std::string> names = Split(command.elsewhere, ' ');
    if (std::ranges::find(names, name) == names.end()) continue;
    return fmt::format("; did you mean \"{}\"?", command.name);
  }
  for (const CLI::App* command : InnerCommands(root)) {
    for (const CLI::App* inner : InnerCommands(*command)) {
      if (inner->get_name() != name) continue;
      return fmt::format("; did you mean \"{} {}\"?", command->get_name(), name);
    }
  }
  return "";
}

// What a command lacks: a command of its own, or an option, with its explanation.
std::string MissingPart(const CLI::App& app, const std::string& name) {
  const std::vector<std::string> commands = KnownNames(app, false);
  if (!commands.empty()) return fmt::format("{} needs a command: {}", name, Join(commands, ", "));
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_required() || option->count() > 0) continue;
    return fmt::format("{} needs {}: {}", name, option->get_name(), option->get_description());
  }
  return "";
}

// Of an option with too few or too many values. The library's words name its own types.
std::string WrongCount(const CLI::App& app, const std::string& what) {
  const CLI::Option* option = app.get_option_no_throw(what.substr(0, what.find(':')));
  if (!option) return "";
  const bool takes_one = option->get_multi_option_policy() == CLI::MultiOptionPolicy::Throw;
  if (takes_one && option->count() > 1) {
    return fmt::format("{} is given {} times; give it once", option->get_name(), option->count());
  }
  return fmt::format("{} needs a value: {}", option->get_name(), option->get_description());
}

// Says what is wrong with the command line, and what was probably meant.
std::string UsageMessage(const CLI::App& root, const CLI::ParseError& error) {
  const CLI::App& app = Chosen(root);
  const std::string name = FullName(app);
  std::vector<std::string> extras = root.remaining(true);
  std::erase(extras, "--");  // only says that no options follow
  if (extras.empty()) {
    std::string text;
    if (dynamic_cast<const CLI::RequiredError*>(&error)) text = MissingPart(app, name);
    if (dynamic_cast<const CLI::ArgumentMismatch*>(&error)) text = WrongCount(app, error.what());
    return text.empty() ? error.what() : text;
  }
  const std::string unknown = extras.front().substr(0, extras.front().find('='));
  const bool is_option = unknown.starts_with('-');
  const std::vector<std::string> known = KnownNames(app, is_option);
  if (std::ranges::find(known, unknown) != known.end()) {
    return fmt::format("{0} must come after the command: {1} {0} ...", unknown, name);
  }
  const char* kind = is_option ? "option" : known.empty() ? "argument" : "command";
  std::string meant = &app == &root ? CommandCalled(root, unknown) : "";
  if (meant.empty()) meant = Meant(app, extras.front(), unknown, known);
  return fmt::format("{} has no {} \"{}\"{}", name, kind, unknown, meant);
}

// A problem of a configuration that has no line of a file says in its message where it is.
Json ProblemJson(const Problem& problem) {
  const auto& [where, message] = problem;
  if (where.line > 0) {
    return {{"file", where.source},
            {"line", where.line},
            {"column", where.column},
            {"message", message}};
  }
  const std::string place = where.source.empty() ? "" : where.source + ": ";
  return {{"file", nullptr}, {"line", nullptr}, {"column", nullptr}, {"message", place + message}};
}

void PrintErrorAsJson(const Error& error) {
  Json list = Json::array();
  if (const auto* config = dynamic_cast<const ConfigError*>(&error)) {
    for (const Problem& problem : config->problems()) list.push_back(ProblemJson(problem));
  } else {
    list.push_back(ProblemJson({{}, error.what()}));
  }
  fmt::print("{}\n", JsonText({{"errors", list}}));
}

// One rank of a job prints it.
bool WantsJson(const CLI::App& root) {
  const CLI::Option* option = Chosen(root).get_option_no_throw("--json");
  return option && option->count() > 0 && DetectLaunch().rank == 0;
}

// Who asked for JSON reads errors as JSON too.
ExitCode RunReported(const CLI::App& root, const Action& action) {
  try {
    CheckEnvironment();
    return action();
  } catch (const Error& error) {
    if (!WantsJson(root)) throw;
    PrintErrorAsJson(error);
    return error.code();
  }
}

// An empty path would count as not given, and often comes from a variable that is not set. The next
// option would be taken for a path that was forgotten.
std::string ProblemOfPath(const std::string& text) {
  if (text.empty()) return "must not be empty; name one, or leave it out";
  if (!text.starts_with("--")) return HomeFault(text);
  return fmt::format("must have a value before {0}; if {0} is its name, write ./{0}", text);
}

// The library takes 010 for 8, lets "nan" through ranges, and says of 2.0 that it is not in a range
// of whole numbers.
std::string ProblemOfNumber(const std::string& text, bool is_whole) {
  const bool has_sign = text.starts_with('-') || text.starts_with('+');
  const std::string_view digits = std::string_view(text).substr(has_sign ? 1 : 0);
  const auto is_digit = [&](size_t i) {
    return i < digits.size() && digits[i] >= '0' && digits[i] <= '9';
  };
  const bool is_octal = digits.starts_with('0') && is_digit(1);
  double value;
  const bool is_decimal = is_digit(0) && !is_octal && ParseDouble(digits, &value);
  const bool has_others = digits.find_first_not_of("0123456789") != digits.npos;
  if (is_decimal && !(is_whole && has_others)) return "";
  return fmt::format("\"{}\" is not a {} number", Printable(text, 40),
                     is_decimal ? "whole" : "decimal");
}

// Checks the values of all options by the kind of value that they take.
void CheckValues(CLI::App& app) {
  for (CLI::Option* option : app.get_options([](const CLI::Option*) { return true; })) {
    const std::string type = option->get_type_name();
    if (type == "FILE" || type == "DIR" || type == "NAME") {
      option->check(CLI::Validator(ProblemOfPath, ""));
    } else if (const bool is_whole = type.starts_with("INT") || type.starts_with("UINT");
               is_whole || type.starts_with("FLOAT")) {
      // Before the checks that the command has added, which read the number.
      option->transform(CLI::Validator(
          [is_whole](std::string& text) { return ProblemOfNumber(text, is_whole); }, ""));
    }
  }
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    CheckValues(*command);
  }
}

// Prints what a command line asks for instead of work (--help, --version), or what is wrong with
// it.
ExitCode Answer(const CLI::App& root, const CLI::ParseError& error) {
  const Launch launch = DetectLaunch();
  if (error.get_exit_code() == 0) {
    if (launch.rank == 0) root.exit(error);
    return ExitCode::kDone;
  }
  // The tasks of srun have the same command line, and it does not end them when one has failed.
  if (launch.rank > 0 && launch.launcher == "srun") return ExitCode::kConfig;
  PrintErrorOfRank(launch.rank, fmt::format("{}\nsee \"{} --help\"", UsageMessage(root, error),
                                            FullName(Chosen(root))));
  return ExitCode::kConfig;
}

ExitCode ParseAndRun(int argc, const char* const* argv) {
  CLI::App root(
      "Syntra pretrains and finetunes encoder-decoders, decoders and encoders with attention, "
      "Synthesizers and other token mixers.",
      "syntra");
  root.footer(
      "\"syntra COMMAND --help\" describes a command; \"syntra config explain\" lists all "
      "fields.");
  root.formatter(HelpFormat());
  root.set_version_flag("--version", std::string("syntra ") + Version());
  const Action action = SetUpParts(root, {std::begin(kCommands), std::end(kCommands)});
  CheckValues(root);
  try {
    root.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return Answer(root, error);
  }
  return RunReported(root, action);
}

}  // namespace

int RunCommandLine(int argc, const char* const* argv) {
  InstallCrashHandlers(Version());
  try {
    const ExitCode code = ParseAndRun(argc, argv);
    FlushOutput();
    return static_cast<int>(code);
  } catch (...) {
    EndIfReaderIsGone();
    const Failure failure = CurrentFailure();
    PrintErrorOfRank(DetectLaunch().rank, failure.message);
    return static_cast<int>(failure.code);
  }
}

}  // namespace syntra
