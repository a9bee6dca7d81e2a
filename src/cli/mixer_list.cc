// SPDX-License-Identifier: Apache-2.0
#include "cli/mixer_list.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "base/utf8.h"
#include "config/config.h"
#include "train/run_directory.h"

namespace syntra {
namespace {

constexpr int64_t kMaxFileBytes = 1 << 20;

bool IsDirectoryName(std::string_view name) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  return !name.starts_with('.') && std::ranges::all_of(name, is_plain);
}

// Whether `compare` itself writes something of this name beside the mixers' runs.
bool IsTaken(const Path& name) {
  const RunDirectory files;
  return name == files.Prepared({}) || name == files.start() || name == files.comparison() ||
         name == files.comparison_page();
}

// Whether a line may change this. All other fields are the recipe, which the mixers have in common.
bool IsOfTheMixer(const std::string& change) {
  const std::string field =
      change.substr(0, change.find_first_not_of("abcdefghijklmnopqrstuvwxyz_."));
  if (field == "data.pack" || field == "checkpoint.initial") return true;
  const std::string message = field.substr(0, field.find('.'));
  if (message != "model" && message != "optimizer") return false;
  // "model { ... }" may go on with others.
  Config changed = ReadUnchecked({}, std::vector{change});
  changed.clear_model();
  changed.clear_optimizer();
  return changed.ByteSizeLong() == 0;
}

}  // namespace

std::vector<ListedMixer> ReadMixerList(const std::string& file) {
  std::vector<ListedMixer> mixers;
  int number = 0;
  const std::string text = ReadWholeFile(file, kMaxFileBytes, ExitCode::kConfig);
  const size_t begin = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  for (const std::string& whole : Split(std::string_view(text).substr(begin), '\n')) {
    ++number;
    const std::string_view line = StripSpace(whole);
    if (line.empty() || line.starts_with('#')) continue;
    const size_t end = std::min(line.find_first_of(" \t"), line.size());
    const std::string name(line.substr(0, end));
    const std::string change(StripSpace(line.substr(end)));
    if (IsTaken(name)) {
      Fail(ExitCode::kConfig,
           "{}:{}: a mixer cannot be called {}, since the comparison has a file or directory of "
           "that name; give it another name",
           file, number, name);
    }
    if (!IsDirectoryName(name)) {
      Fail(ExitCode::kConfig,
           "{}:{}: \"{}\" cannot name a mixer, since its run gets a directory of that name; use "
           "letters, digits, \"_\", \"-\" and \".\", and write what it changes after it, e.g. "
           "random model.mixer.attention.term=[{{ random {{}} }}]",
           file, number, Printable(name, 40));
    }
    if (!change.empty() && !IsOfTheMixer(change)) {
      Fail(ExitCode::kConfig,
           "{}:{}: a mixer may not change \"{}\", only model, optimizer, data.pack and "
           "checkpoint.initial; set it for all with --set, so that their numbers can be compared",
           file, number, Printable(change, 60));
    }
    if (mixers.empty() || mixers.back().name != name) {
      if (std::ranges::find(mixers, name, &ListedMixer::name) != mixers.end()) {
        Fail(ExitCode::kConfig, "{}:{}: there is a mixer {} already; give this one another name",
             file, number, name);
      }
      mixers.push_back({name, {}});
    }
    if (!change.empty()) mixers.back().overrides.push_back(change);
  }
  if (mixers.empty()) {
    Fail(ExitCode::kConfig, "{} lists no mixer; each has a line of its name and what it changes",
         file);
  }
  return mixers;
}

}  // namespace syntra
