// SPDX-License-Identifier: Apache-2.0
// The list of `compare --mixers`: every mixer has a name of its own that a directory can have.
#include "cli/mixer_list.h"

#include <set>

#include "fuzz/target.h"

namespace syntra {
namespace {

void Run(std::string_view input) {
  std::set<std::string> names;
  for (const ListedMixer& mixer : ReadMixerList(InputFile(input, "mixers.txt").string())) {
    SYNTRA_CHECK(names.insert(mixer.name).second, "{}", mixer.name);
    SYNTRA_CHECK(!mixer.name.empty() && mixer.name.find('/') == mixer.name.npos &&
                 !mixer.name.starts_with('.'));
    for (const std::string& text : mixer.overrides) SYNTRA_CHECK(!text.empty());
  }
}

std::vector<std::string> Seeds() {
  return {SourceFile("configs/mixers/quickstart.txt"),
          "# a comment\n\na model { width: 8 }\na optimizer.epsilon=1e-8\nb\n"};
}

}  // namespace

const Target fuzz_mixer_list = {.name = "mixer_list",
                                .refusals = {ExitCode::kConfig},
                                .run = Run,
                                .seeds = Seeds,
                                .tokens = {"\n", "#", " ", "\t", "..", "/", "\r\n"},
                                .mutations = 1000};

}  // namespace syntra
