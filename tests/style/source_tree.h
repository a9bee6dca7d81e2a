// SPDX-License-Identifier: Apache-2.0
// The source tree as the style rules see it: its files, and the table of which folder may use
// which.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace syntra {

namespace fs = std::filesystem;

inline constexpr const char* kLicense = "// SPDX-License-Identifier: Apache-2.0\n";

inline const fs::path& Root() {
  static const fs::path root = SYNTRA_SOURCE_DIR;
  return root;
}

inline std::string Read(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline std::vector<std::string> Lines(const fs::path& path) {
  std::stringstream text(Read(path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

inline bool IsSource(const fs::path& path) {
  return path.extension() == ".cc" || path.extension() == ".cu";
}
inline bool IsCode(const fs::path& path) { return IsSource(path) || path.extension() == ".h"; }

// Files of the tree, relative to its root; nothing hidden, nothing built.
inline const std::vector<fs::path>& Files() {
  static const std::vector<fs::path> files = [] {
    std::vector<fs::path> found;
    for (auto entry = fs::recursive_directory_iterator(Root());
         entry != fs::recursive_directory_iterator(); ++entry) {
      const std::string name = entry->path().filename().string();
      // Folders of builds, some of which have only begun.
      const bool built =
          entry->is_directory() && (fs::exists(entry->path() / "CMakeCache.txt") ||
                                    (entry.depth() == 0 && name.starts_with("build")));
      if (name.starts_with(".") || built) {
        entry.disable_recursion_pending();
        continue;
      }
      if (entry->is_regular_file()) found.push_back(fs::relative(entry->path(), Root()));
    }
    std::ranges::sort(found);
    return found;
  }();
  return files;
}

inline std::vector<fs::path> CodeBelow(const std::string& folder) {
  std::vector<fs::path> found;
  for (const fs::path& path : Files()) {
    if (IsCode(path) && path.string().starts_with(folder + "/")) found.push_back(path);
  }
  return found;
}

// Names between backquotes in one cell of a table: "`src/nn`, `src/optim`".
inline std::vector<std::string> Quoted(const std::string& cell) {
  std::vector<std::string> names;
  static const std::regex quoted("`([^`]+)`");
  for (std::sregex_iterator it(cell.begin(), cell.end(), quoted), end; it != end; ++it) {
    names.push_back((*it)[1]);
  }
  return names;
}

// "src/nn" is spoken of as "nn", "configs/schema" as "schema".
inline std::string ShortName(const std::string& folder) {
  return fs::path(folder).filename().string();
}

struct Folder {
  std::string path;
  int layer = 0;
  std::set<std::string> may_use;  // short names
};

// The table of src/README.md by short name, what may be used of the used ones included.
inline std::map<std::string, Folder> Arrows() {
  std::map<std::string, Folder> folders;
  std::map<std::string, std::string> uses;
  static const std::regex row(R"(\| (\d+) \| ([^|]+) \| ([^|]+) \|.*)");
  for (const std::string& line : Lines(Root() / "src/README.md")) {
    std::smatch cells;
    if (!std::regex_match(line, cells, row)) continue;
    for (const std::string& path : Quoted(cells[2])) {
      folders[ShortName(path)] = {path, std::stoi(cells[1]), {}};
      uses[ShortName(path)] = cells[3];
    }
  }
  static const std::regex word(R"(\w+)"), aside(R"(\((\w+): \+ (\w+)\))");
  for (auto& [name, folder] : folders) {
    std::string text = uses[name];
    std::smatch extra;
    if (std::regex_search(text, extra, aside)) {
      if (extra[1] == name) folder.may_use.insert(extra[2]);
      text = extra.prefix();
    }
    for (std::sregex_iterator it(text.begin(), text.end(), word), end; it != end; ++it) {
      for (const auto& [other, below] : folders) {
        const bool all_below = it->str() == "everything" && below.layer < folder.layer;
        if (all_below || it->str() == other) folder.may_use.insert(other);
      }
    }
  }
  for (size_t pass = 0; pass < folders.size(); ++pass) {
    for (auto& [name, folder] : folders) {
      for (const std::string& used : std::set<std::string>(folder.may_use)) {
        const std::set<std::string>& more = folders.at(used).may_use;
        folder.may_use.insert(more.begin(), more.end());
      }
    }
  }
  return folders;
}

}  // namespace syntra
