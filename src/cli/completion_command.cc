// syntra completion bash|zsh|fish: scripts made from the tree of commands and the schema's fields.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/text.h"
#include "cli/commands.h"
#include "config/explain.h"

namespace syntra {
namespace {

struct Choice {
  std::string word;
  std::string summary;
};

// One command: the words that lead to it, and what can follow.
struct Node {
  std::string path;  // "syntra config"
  std::vector<Choice> commands;
  std::vector<Choice> options;
};

void Collect(const CLI::App& app, const std::string& path, std::vector<Node>* nodes) {
  Node node{path, {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      node.options.push_back({"--" + name, option->get_description()});
    }
  }
  const auto inner = app.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* command : inner) {
    node.commands.push_back({command->get_name(), command->get_description()});
  }
  nodes->push_back(std::move(node));
  for (const CLI::App* command : inner) {
    Collect(*command, path + " " + command->get_name(), nodes);
  }
}

// In single quotes for any of the shells.
std::string ShellQuoted(const std::string& text, const char* quote = "'\\''") {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string(quote) : std::string(1, c);
  return quoted + "'";
}

// `case` branches that lead from the words of a command line to the command that they name.
std::string PathBranches(const std::vector<Node>& nodes) {
  std::string text;
  for (const Node& node : nodes) {
    if (node.path.find(' ') == std::string::npos) continue;
    text += fmt::format("      \"{0}\") command=\"{0}\" ;;\n", node.path);
  }
  return text;
}

std::string Fields() { return Join(SettableFields(), " "); }

std::string BashScript(const std::vector<Node>& nodes) {
  std::string branches;
  for (const Node& node : nodes) {
    std::vector<std::string> words;
    for (const auto* choices : {&node.commands, &node.options}) {
      for (const Choice& choice : *choices) words.push_back(choice.word);
    }
    branches += fmt::format("    \"{}\") words=\"{}\" ;;\n", node.path, Join(words, " "));
  }
  return fmt::format(
      R"(# bash completion of syntra: source this file, or save it as
# ~/.local/share/bash-completion/completions/syntra
_syntra() {{
  local command=syntra words= word current=${{COMP_WORDS[COMP_CWORD]}}
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$command $word" in
{}    esac
  done
  case "$command" in
{}  esac
  case "${{COMP_WORDS[COMP_CWORD-1]}}" in
    --config) COMPREPLY=(); return ;;
    --set) compopt -o nospace 2>/dev/null
           COMPREPLY=($(compgen -S = -W "{}" -- "$current")); return ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _syntra syntra
)",
      PathBranches(nodes), branches, Fields());
}

std::string ZshScript(const std::vector<Node>& nodes) {
  std::string branches;
  for (const Node& node : nodes) {
    branches += fmt::format("    \"{}\") choices=(\n", node.path);
    for (const auto* choices : {&node.commands, &node.options}) {
      for (const Choice& choice : *choices) {
        branches += fmt::format("      {}\n", ShellQuoted(choice.word + ":" + choice.summary));
      }
    }
    branches += "    ) ;;\n";
  }
  return fmt::format(
      R"(#compdef syntra
# zsh completion of syntra: save as _syntra in a directory of $fpath.
_syntra() {{
  local command=syntra word
  local -a choices
  for word in ${{words[2,CURRENT-1]}}; do
    case "$command $word" in
{}    esac
  done
  case "$command" in
{}  esac
  case "${{words[CURRENT-1]}}" in
    --config) _files; return ;;
    --set) compadd -S = -- {}; return ;;
  esac
  _describe 'choice' choices || _files
}}
_syntra "$@"
)",
      PathBranches(nodes), branches, Fields());
}

std::string FishScript(const std::vector<Node>& nodes) {
  std::string text =
      "# fish completion of syntra: save as ~/.config/fish/completions/syntra.fish\n"
      "function __syntra_at\n"
      "  set -l plain (string match -v -- '-*' (commandline -opc))\n"
      "  set -l count (count $argv)\n"
      "  test (count $plain) -ge $count; and test \"$plain[1..$count]\" = \"$argv\"\n"
      "end\n";
  for (const Node& node : nodes) {
    const std::string condition = ShellQuoted("__syntra_at " + node.path);
    for (const Choice& choice : node.commands) {
      text += fmt::format("complete -c syntra -f -n {} -a {} -d {}\n", condition, choice.word,
                          ShellQuoted(choice.summary, "\\'"));
    }
    for (const Choice& choice : node.options) {
      const char* value = choice.word == "--config" ? " -r -F" : "";
      const std::string fields =
          choice.word == "--set" ? fmt::format(" -x -a '{}='", Join(SettableFields(), "= ")) : "";
      text += fmt::format("complete -c syntra -n {} -l {}{}{} -d {}\n", condition,
                          choice.word.substr(2), value, fields, ShellQuoted(choice.summary, "\\'"));
    }
  }
  return text;
}

}  // namespace

Action SetUpCompletion(CLI::App& app) {
  const auto shell = std::make_shared<std::string>();
  app.add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  return [shell, &app] {
    std::vector<Node> nodes;
    Collect(*app.get_parent(), "syntra", &nodes);
    fmt::print("{}", *shell == "bash"  ? BashScript(nodes)
                     : *shell == "zsh" ? ZshScript(nodes)
                                       : FishScript(nodes));
    return ExitCode::kDone;
  };
}

}  // namespace syntra
