// SPDX-License-Identifier: Apache-2.0
// syntra completion bash|zsh|fish: scripts that ask this program what can follow.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/file.h"
#include "base/text.h"
#include "checkpoint/layout.h"
#include "cli/commands.h"
#include "config/explain.h"

namespace syntra {
namespace {

struct Choice {
  std::string word;     // whole; one that ends with '=' or '/' is to be continued
  std::string summary;  // what it is; may be empty
};

std::vector<Choice> Fields() {
  std::vector<Choice> choices;
  for (const FieldPlace& field : AllFields()) choices.push_back({field.path, ""});
  return choices;
}

// `text` stands where FIELD=VALUE does.
std::vector<Choice> Assignments(const std::string& text) {
  std::vector<Choice> choices;
  for (const FieldPlace& field : AllFields()) {
    if (!field.settable) continue;
    if (text.starts_with(field.path + '=')) {
      for (const std::string& value : field.values)
        choices.push_back({field.path + '=' + value, ""});
    } else {
      choices.push_back({field.path + '=', ""});
    }
  }
  return choices;
}

bool IsRunOrCheckpoint(const Path& directory) {
  const std::string name = directory.filename();
  std::error_code code;
  return ParseStepName(name) || name == kCheckpointsFolder ||
         std::filesystem::is_directory(directory / kCheckpointsFolder, code);
}

// Directories below that of `text`; of these only runs and checkpoints, if there are any.
std::vector<Choice> Checkpoints(const std::string& text) {
  const std::string before = text.substr(0, text.rfind('/') + 1);
  std::vector<Choice> all, fitting;
  std::error_code code;
  for (std::filesystem::directory_iterator entry(before.empty() ? "." : before, code), end;
       !code && entry != end; entry.increment(code)) {
    std::error_code unreadable;
    if (!entry->is_directory(unreadable)) continue;
    const Choice choice{before + entry->path().filename().string() + '/', ""};
    all.push_back(choice);
    if (IsRunOrCheckpoint(entry->path())) fitting.push_back(choice);
  }
  return fitting.empty() ? all : fitting;
}

// "TEXT:{bash,zsh,fish}", as validators describe themselves.
std::vector<Choice> Listed(const std::string& type) {
  std::vector<Choice> choices;
  const size_t open = type.find('{'), close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return {};
  for (const std::string& word : Split(type.substr(open + 1, close - open - 1), ',')) {
    choices.push_back({word, ""});
  }
  return choices;
}

// Values of an option or argument of `app` that begin as `text` may.
std::vector<Choice> Values(const CLI::App& app, const CLI::Option& option,
                           const std::string& text) {
  const std::string type = option.get_type_name();
  if (type == "FIELD=VALUE") return Assignments(text);
  if (type == "FIELD") return Fields();
  const bool of_checkpoint = option.check_lname("checkpoint") || app.get_name() == "checkpoint";
  if (type == "DIR" && of_checkpoint) return Checkpoints(text);
  return Listed(type);
}

bool TakesValue(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

// Follows the words of a command line that are complete.
class Walk {
 public:
  explicit Walk(const CLI::App& root) : app_(&root) {}

  void Take(const std::string& word) {
    if (awaiting_) {
      awaiting_ = nullptr;
    } else if (word.starts_with("--")) {
      const CLI::Option* option = app_->get_option_no_throw(word);
      if (option && TakesValue(*option)) awaiting_ = option;
    } else if (const CLI::App* command = Command(word)) {
      app_ = command;
      arguments_ = 0;
    } else {
      ++arguments_;
    }
  }

  std::vector<Choice> End(const std::string& text) const {
    if (awaiting_) return Values(*app_, *awaiting_, text);
    if (text.starts_with('-')) return Options(text);
    std::vector<Choice> choices;
    for (const CLI::App* command : InnerCommands(*app_)) {
      choices.push_back({command->get_name(), command->get_description()});
    }
    if (const CLI::Option* argument = Argument()) {
      for (Choice& choice : Values(*app_, *argument, text)) choices.push_back(std::move(choice));
    }
    return choices;
  }

 private:
  const CLI::App* Command(const std::string& word) const {
    for (const CLI::App* command : InnerCommands(*app_)) {
      if (command->get_name() == word) return command;
    }
    return nullptr;
  }

  // The argument without a name that comes next; null: none.
  const CLI::Option* Argument() const {
    std::vector<const CLI::Option*> arguments;
    for (const CLI::Option* option : app_->get_options()) {
      if (option->get_positional()) arguments.push_back(option);
    }
    if (arguments_ < arguments.size()) return arguments[arguments_];
    return nullptr;
  }

  std::vector<Choice> Options(const std::string& text) const {
    std::vector<Choice> choices;
    for (const CLI::Option* option : app_->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        if (!text.starts_with("--" + name + '=')) {
          choices.push_back({"--" + name, option->get_description()});
          continue;
        }
        // --option=value
        const std::string before = "--" + name + '=';
        for (const Choice& choice : Values(*app_, *option, text.substr(before.size()))) {
          choices.push_back({before + choice.word, choice.summary});
        }
      }
    }
    return choices;
  }

  const CLI::App* app_;
  const CLI::Option* awaiting_ = nullptr;  // whose value comes next
  size_t arguments_ = 0;                   // without a name, so far
};

// The words that can complete the last of `words`, which follow the program's name. None: the shell
// may offer files.
std::vector<Choice> CompletionsOf(const CLI::App& root, const std::vector<std::string>& words) {
  const std::string text = words.empty() ? "" : words.back();
  Walk walk(root);
  for (size_t i = 0; i + 1 < words.size(); ++i) walk.Take(words[i]);
  std::vector<Choice> choices = walk.End(text);
  std::erase_if(choices, [&](const Choice& choice) { return !choice.word.starts_with(text); });
  return choices;
}

constexpr const char* kBashScript =
    R"script(# bash completion of syntra: eval "$(syntra completion bash)", or save it as
# ~/.local/share/bash-completion/completions/syntra
_syntra() {
  mapfile -t COMPREPLY < <("${COMP_WORDS[0]}" completion bash -- "${COMP_WORDS[@]:1:COMP_CWORD}" \
                           2>/dev/null)
  if [[ ${COMPREPLY[0]-} == *= ]]; then
    compopt -o nospace 2>/dev/null
  elif [[ ${COMPREPLY[0]-} == */ ]]; then
    # The shell quotes names of files, and puts a slash after those of directories.
    COMPREPLY=("${COMPREPLY[@]%/}")
    compopt -o filenames 2>/dev/null
  fi
}
complete -o default -F _syntra syntra
)script";

constexpr const char* kZshScript =
    R"script(#compdef syntra
# zsh completion of syntra: eval "$(syntra completion zsh)" after compinit, or save it as _syntra in
# a directory of $fpath.
_syntra() {
  local line word
  local -a whole begun
  for line in ${(f)"$("${words[1]}" completion zsh -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)"}; do
    word=${line%%$'\t'*}
    if [[ $word == *[=/] ]]; then
      begun+=("$word")
    else
      whole+=("${word//:/\\:}:${line#*$'\t'}")
    fi
  done
  if (( ${#whole} + ${#begun} == 0 )); then
    _files
    return
  fi
  (( ${#begun} )) && compadd -S '' -- "${begun[@]}"
  (( ${#whole} )) && _describe syntra whole
}
if [[ ${funcstack[1]} == _syntra ]]; then
  _syntra "$@"
else
  compdef _syntra syntra
fi
)script";

constexpr const char* kFishScript =
    R"script(# fish completion of syntra: save as ~/.config/fish/completions/syntra.fish
function __syntra_choices
  set -l words (commandline -opc)
  $words[1] completion fish -- $words[2..-1] (commandline -ct) 2>/dev/null
end
complete -c syntra -n 'count (__syntra_choices) >/dev/null' -f -a '(__syntra_choices)'
)script";

// What a word of a command line means to bash: without its quotes, of which the last may be open.
std::string Unquoted(std::string_view word) {
  std::string text;
  char open = 0;  // the quote that is
  for (size_t i = 0; i < word.size(); ++i) {
    const char c = word[i];
    const bool more = i + 1 < word.size();
    if (c == '\\' && open != '\'' && more) {
      const char next = word[++i];
      if (open && std::string_view("$`\"\\").find(next) == std::string_view::npos) text += c;
      text += next;
    } else if (open ? c == open : c == '\'' || c == '"') {
      open = open ? 0 : c;
    } else {
      text += c;
    }
  }
  return text;
}

// bash gives words as they were typed, cuts them at "=", and puts in what stands after the last
// cut. These are as they are meant.
struct BashWords {
  std::vector<std::string> whole;
  std::string cut;  // what the shell keeps of the last of them

  explicit BashWords(const std::vector<std::string>& words) {
    for (size_t i = 0; i < words.size(); ++i) {
      if (words[i] == "=" && !whole.empty()) {
        whole.back() += '=';
        const bool goes_on = i + 1 < words.size();
        cut = whole.back();
        if (goes_on) whole.back() += Unquoted(words[++i]);
      } else {
        whole.push_back(Unquoted(words[i]));
        cut.clear();
      }
    }
  }
};

void PrintChoices(const CLI::App& root, const std::string& shell,
                  const std::vector<std::string>& words) {
  if (shell == "bash") {
    const BashWords typed(words);
    for (const Choice& choice : CompletionsOf(root, typed.whole)) {
      fmt::print("{}\n", choice.word.substr(typed.cut.size()));
    }
    return;
  }
  for (const Choice& choice : CompletionsOf(root, words)) {
    fmt::print("{}\t{}\n", choice.word, choice.summary);
  }
}

}  // namespace

Action SetUpCompletion(CLI::App& app) {
  struct Request {
    std::string shell;
    std::vector<std::string> words;
  };
  const auto request = std::make_shared<Request>();
  app.add_option("shell", request->shell, "Shell to print the script for")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  const CLI::Option* words = app.add_option(
      "words", request->words,
      "Print the completions of these words, given after --, instead; used by the scripts");
  return [request, words, &app] {
    if (words->count() > 0) {
      PrintChoices(*app.get_parent(), request->shell, request->words);
    } else {
      fmt::print("{}", request->shell == "bash"  ? kBashScript
                       : request->shell == "zsh" ? kZshScript
                                                 : kFishScript);
    }
    return ExitCode::kDone;
  };
}

}  // namespace syntra
