// SPDX-License-Identifier: Apache-2.0
// syntra completion bash|zsh|fish: scripts that ask this program what can follow.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/complete.h"

namespace syntra {
namespace {

constexpr const char* kBashScript =
    R"script(# bash completion of syntra: eval "$(syntra completion bash)", or save it as
# ~/.local/share/bash-completion/completions/syntra
_syntra() {
  mapfile -t COMPREPLY < <("${COMP_WORDS[0]}" completion bash -- "${COMP_WORDS[@]:1:COMP_CWORD}" \
                           2>/dev/null)
  [[ ${COMPREPLY[0]-} != *[=/] ]] || compopt -o nospace 2>/dev/null
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
  for line in ${(f)"$("${words[1]}" completion zsh -- "${(@)words[2,CURRENT]}" 2>/dev/null)"}; do
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

// bash cuts words at "=" and puts in what stands after the last cut.
struct BashWords {
  std::vector<std::string> whole;
  std::string cut;  // what the shell keeps of the last of them

  explicit BashWords(const std::vector<std::string>& words) {
    for (size_t i = 0; i < words.size(); ++i) {
      if (words[i] == "=" && !whole.empty()) {
        whole.back() += '=';
        const bool goes_on = i + 1 < words.size();
        cut = whole.back();
        if (goes_on) whole.back() += words[++i];
      } else {
        whole.push_back(words[i]);
        cut.clear();
      }
    }
  }
};

void PrintChoices(const CLI::App& root, const std::string& shell,
                  const std::vector<std::string>& words) {
  if (shell == "bash") {
    const BashWords typed(words);
    for (const Choice& choice : Complete(root, typed.whole)) {
      fmt::print("{}\n", choice.word.substr(typed.cut.size()));
    }
    return;
  }
  for (const Choice& choice : Complete(root, words)) {
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
