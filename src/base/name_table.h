// SPDX-License-Identifier: Apache-2.0
// A table from names to entries. Unknown names are errors that suggest the nearest known one, or
// list those that there are; registering a name twice is a bug.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace syntra {

template <typename Entry>
class NameTable {
 public:
  // `kind` names the entries in errors: "op", "mixer", "metric".
  explicit NameTable(std::string kind) : kind_(std::move(kind)) {}

  void Add(const std::string& name, Entry entry) {
    SYNTRA_CHECK(entries_.emplace(name, std::move(entry)).second, "{} \"{}\" is registered twice",
                 kind_, name);
  }

  const Entry* Find(std::string_view name) const {
    const auto it = entries_.find(std::string(name));
    return it == entries_.end() ? nullptr : &it->second;
  }

  // Throws Error(kConfig) if the name is unknown.
  const Entry& Get(std::string_view name) const {
    if (const Entry* entry = Find(name)) return *entry;
    std::string remedy = DidYouMean(name, Names());
    if (remedy.empty()) remedy = "; there are " + Join(Names(), ", ");
    Fail(ExitCode::kConfig, "unknown {} \"{}\"{}", kind_, name, remedy);
  }

  // In alphabetical order.
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& [name, entry] : entries_) names.push_back(name);
    return names;
  }

 private:
  std::string kind_;
  std::map<std::string, Entry> entries_;
};

}  // namespace syntra
