// SPDX-License-Identifier: Apache-2.0
#include "data/pattern.h"

#include <dirent.h>
#include <fnmatch.h>
#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"

namespace syntra {
namespace {

constexpr size_t kDigits = 5;
constexpr std::string_view kOf = "-of-";
constexpr int64_t kMissingNamedAtMost = 5;

// The last error of a call that glob made. glob itself takes the end of a directory that fails for
// the end of its names, and a file that it cannot look at for none.
thread_local int glob_failure = 0;

// Notes the error in errno, unless it says that there is nothing of this name.
void NoteFailure() {
  if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP) glob_failure = errno;
}

void* OpenDirectory(const char* path) {
  DIR* directory = opendir(path);
  if (!directory) NoteFailure();
  return directory;
}

dirent* NextEntry(void* directory) {
  errno = 0;
  dirent* entry = readdir(static_cast<DIR*>(directory));
  if (!entry && errno != 0) NoteFailure();
  return entry;
}

void CloseDirectory(void* directory) { closedir(static_cast<DIR*>(directory)); }

template <auto kCall>
int LookAt(const char* path, struct stat* status) {
  const int result = kCall(path, status);
  if (result != 0) NoteFailure();
  return result;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNumber(std::string_view text) {
  return text.size() == kDigits && std::ranges::all_of(text, IsDigit);
}

// Datasets that Hugging Face's library has uploaded may have a fingerprint after the number, of
// each shard another: "train-00007-of-01024-a09b74b3ef9c3b56.parquet".
constexpr std::string_view kFingerprint = "-0123456789abcdef";  // one that it could be
bool StartsWithFingerprint(std::string_view text) {
  const std::string_view first = text.substr(0, kFingerprint.size());
  return first.size() == kFingerprint.size() && first[0] == '-' &&
         first.find_first_not_of(kFingerprint.substr(1), 1) == std::string_view::npos;
}

// Identifies a numbered set: the path without the shard's own number and fingerprint.
struct ShardSet {
  std::string prefix, suffix;
  int64_t count = 0;
  bool has_fingerprints = false;
  auto operator<=>(const ShardSet&) const = default;
  std::string NameOf(int64_t number, std::string_view fingerprint) const {
    return fmt::format("{}{:05}-of-{:05}{}{}", prefix, number, count,
                       has_fingerprints ? fingerprint : "", suffix);
  }
};

// Splits ".../c4-train.00007-of-01024.json.gz"; false for names without a number.
bool ParseShardName(const std::string& path, ShardSet* set, int64_t* number) {
  const size_t of = path.rfind(kOf);
  if (of == std::string::npos || of < kDigits || path.size() < of + kOf.size() + kDigits) {
    return false;
  }
  const size_t begin = of - kDigits;
  const std::string_view view = path, first = view.substr(begin, kDigits);
  const std::string_view second = view.substr(of + kOf.size(), kDigits);
  std::string_view rest = view.substr(of + kOf.size() + kDigits);
  // Of longer numbers these are parts.
  const bool is_longer =
      (begin > 0 && IsDigit(view[begin - 1])) || (!rest.empty() && IsDigit(rest.front()));
  if (!IsNumber(first) || !IsNumber(second) || is_longer) return false;
  const bool has_fingerprint = StartsWithFingerprint(rest);
  if (has_fingerprint) rest.remove_prefix(kFingerprint.size());
  *set = {path.substr(0, begin), std::string(rest), 0, has_fingerprint};
  return ParseInt64(first, number) && ParseInt64(second, &set->count);
}

// A pattern may match only a part of a set ("*-0000?-of-01024*"). Only numbers that it would match
// count as missing.
void CheckSetsAreWhole(const std::string& pattern, const std::vector<std::string>& names) {
  std::map<ShardSet, std::set<int64_t>> sets;
  for (const std::string& name : names) {
    ShardSet set;
    int64_t number;
    if (!ParseShardName(name, &set, &number)) continue;
    if (number >= set.count) {
      Fail(ExitCode::kData,
           "{} has a number that a set of {} shards does not have; rename or move it", name,
           set.count);
    }
    sets[set].insert(number);
  }
  for (const auto& [set, numbers] : sets) {
    std::vector<std::string> missing;
    for (int64_t number = 0; number < set.count; ++number) {
      if (numbers.contains(number)) continue;
      const std::string name = set.NameOf(number, kFingerprint);
      if (fnmatch(pattern.c_str(), name.c_str(), FNM_PATHNAME) != 0) continue;
      missing.push_back(set.NameOf(number, "-*"));
    }
    if (missing.empty()) continue;
    const int64_t total = static_cast<int64_t>(missing.size());
    missing.resize(std::min(total, kMissingNamedAtMost));
    Fail(ExitCode::kData, "{} of the {} shards that {} asks for are missing: {}{}", total,
         set.count, pattern, Join(missing, ", "), total > kMissingNamedAtMost ? ", ..." : "");
  }
}

void RequireNoDirectory(const std::string& pattern, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (!IsDirectory(name)) continue;
    Fail(ExitCode::kData,
         "{} matches {}, which is a directory; let the pattern match files only, such as *.jsonl",
         pattern, name);
  }
}

}  // namespace

std::vector<std::string> NamesOf(const std::string& pattern) {
  if (Exists(pattern)) return {pattern};
  glob_t found{};
  found.gl_opendir = OpenDirectory;
  found.gl_readdir = NextEntry;
  found.gl_closedir = CloseDirectory;
  found.gl_stat = LookAt<stat>;
  found.gl_lstat = LookAt<lstat>;
  glob_failure = 0;
  if (glob(pattern.c_str(), GLOB_ALTDIRFUNC, nullptr, &found) == GLOB_NOSPACE) {
    glob_failure = ENOMEM;
  }
  std::vector<std::string> names(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  if (glob_failure != 0) {
    Fail(ExitCode::kResources, "cannot list the files that match {}: {}", pattern,
         SystemErrorText(glob_failure));
  }
  return names;
}

bool IsPattern(const std::string& text) {
  return text.find_first_of("*?[") != std::string::npos && !Exists(text);
}

std::vector<Path> ExpandPatterns(std::span<const std::string> patterns) {
  std::vector<Path> files;
  std::set<std::string> seen;
  for (const std::string& pattern : patterns) {
    const std::vector<std::string> names = NamesOf(pattern);
    if (names.empty()) {
      Fail(ExitCode::kData,
           "no file matches {}; check the path, and quote patterns so that the shell does not "
           "expand them",
           pattern);
    }
    if (IsPattern(pattern)) {
      RequireNoDirectory(pattern, names);
      CheckSetsAreWhole(pattern, names);
    }
    for (const std::string& name : names) {
      if (seen.insert(name).second) files.emplace_back(name);
    }
  }
  return files;
}

}  // namespace syntra
