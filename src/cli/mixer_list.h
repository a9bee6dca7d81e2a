// SPDX-License-Identifier: Apache-2.0
// The file of `syntra compare --mixers`: which mixers are compared, one line each.
#pragma once

#include <string>
#include <vector>

namespace syntra {

// A line: a name, then what the mixer changes of `model`, `optimizer`, data.pack and
// checkpoint.initial, as after --set. Several lines with one name, side by side, add up. A name
// alone changes nothing. "#" begins a comment line. A byte-order mark at the start is skipped.
struct ListedMixer {
  std::string name;
  std::vector<std::string> overrides;
};

// Throws Error(kConfig) if the file cannot be read or lists no mixer, and with the place of a bad
// line: its name has other characters than letters, digits, "_", "-" and "." (it becomes a
// directory), the name's lines are not together, or it changes something else than a mixer.
std::vector<ListedMixer> ReadMixerList(const std::string& file);

}  // namespace syntra
