// SPDX-License-Identifier: Apache-2.0
#include "cli/option_help.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <regex>
#include <sstream>
#include <vector>

#include "base/text.h"
#include "cli/command.h"

namespace syntra {
namespace {

// The type of an option's value, as its validators describe themselves after a colon.
struct ValueType {
  std::string name;     // "INT"
  std::string allowed;  // "{srun,mpirun}", "INT in [1 - 100]"
};

ValueType TypeOfValue(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t colon = std::min(type.find(':'), type.size());
  return {type.substr(0, colon), colon < type.size() ? type.substr(colon + 1) : ""};
}

// "1 to 100", of "INT in [1 - 100]".
std::string AllowedRange(const CLI::Option& option) {
  static const std::regex range(R"(\w+ in \[(.+) - (.+)\])");
  const std::string allowed = TypeOfValue(option).allowed;
  std::smatch found;
  if (!std::regex_match(allowed, found, range)) return "";
  return fmt::format("{} to {}", found.str(1), found.str(2));
}

bool IsList(const CLI::Option& option) { return option.get_items_expected_max() > 1; }

class Format : public CLI::Formatter {
 public:
  // What can be given without its name, too, is explained among the arguments.
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    if (is_positional || !option->get_positional()) {
      return Formatter::make_option(option, is_positional);
    }
    std::stringstream line;
    CLI::detail::format_help(line, make_option_name(option, false) + " " + OptionValue(*option),
                             fmt::format("The same as {} above", option->get_name(true)),
                             column_width_);
    return line.str();
  }

  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string value = OptionValue(*option);
    return (value.empty() ? "" : " " + value) + (option->get_required() ? " REQUIRED" : "");
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    return MeaningOf(*option);
  }
};

}  // namespace

std::string OptionValue(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return "";
  const ValueType type = TypeOfValue(option);
  const bool is_choice = type.allowed.starts_with('{');
  return (is_choice ? type.allowed : type.name) + (IsList(option) ? " ..." : "");
}

std::string MeaningOf(const CLI::Option& option) {
  std::vector<std::string> notes;
  if (const std::string range = AllowedRange(option); !range.empty()) notes.push_back(range);
  if (const std::string standard = option.get_default_str(); !standard.empty()) {
    notes.push_back("default " + standard);
  }
  for (const CLI::Option* other : option.get_excludes()) {
    notes.push_back("not with " + other->get_name());
  }
  const std::string text = option.get_description();
  return notes.empty() ? text : fmt::format("{} ({})", text, Join(notes, "; "));
}

std::string ArgumentsOf(const CLI::App& app) {
  std::string text = InnerCommands(app).empty() ? "[OPTIONS]" : "COMMAND [OPTIONS]";
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) continue;
    const std::string name = option->get_name(true) + (IsList(*option) ? "..." : "");
    text += option->get_required() ? " " + name : " [" + name + "]";
  }
  return text;
}

std::shared_ptr<CLI::FormatterBase> HelpFormat() { return std::make_shared<Format>(); }

}  // namespace syntra
