// SPDX-License-Identifier: Apache-2.0
// A model of a file system after a power loss. It replays recorded system calls and drops, in any
// combination, changes that were not synced.
//
// The rules are the weakest that POSIX allows. fsync of a file keeps its content, but not its name;
// fsync of a directory keeps the names in it. Any subset of the later changes of names survives; a
// single rename or exchange survives as a whole or not at all. Of content that was not synced
// nothing, half, zeros, or all survives.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"

namespace syntra {

// A system call decoded from the output of strace -y -xx. File descriptors are replaced by their
// paths.
struct RecordedCall {
  std::string name;
  std::vector<std::string> arguments;
};

// The options with which strace records everything that a CrashingDisk needs.
std::vector<std::string> RecordingOptions();
// The calls that succeeded and all calls of `access`, in the order in which they ended.
std::vector<RecordedCall> ReadRecording(const Path& trace);

class CrashingDisk {
 public:
  // Everything that is now below `base` counts as synced.
  explicit CrashingDisk(const Path& base);

  // Throws std::runtime_error for a call below `base` that this model does not know.
  void Apply(const RecordedCall& call);

  // Paths relative to the base and their contents; directories end with '/'.
  using State = std::map<std::string, std::string>;
  // The state without a crash.
  State Everything() const;
  // Visits every state that a crash now may leave. If there are more than `limit`, visits that many
  // at random, always including the states in which nothing and everything survives.
  void ForEachCrash(size_t limit, const std::function<void(const State&)>& visit) const;

 private:
  // Names in one directory that change together, and their new nodes; kGone if a name is removed.
  using Change = std::map<std::string, int>;
  static constexpr int kGone = -1;
  struct Node {
    bool is_directory = false;
    std::map<std::string, int> names, synced_names;
    std::vector<Change> changes;  // of names since the last sync
    std::string content, synced_content;
  };
  // A choice that a crash makes: for a directory whether changes[change] survives, for a file which
  // of its possible contents.
  struct Choice {
    int node;
    size_t change;
    uint32_t options;
  };

  int Load(const Path& path);
  int Find(const Path& path) const;  // kGone if there is none
  bool IsBelowBase(const Path& path) const;
  void ChangeNames(const Path& directory, const Change& change);
  void Create(const Path& path, bool is_directory);
  void Remove(const Path& path);
  void Rename(const Path& from, const Path& to, bool exchange);
  void Write(const Path& path, size_t offset, const std::string& bytes);
  void Sync(const Path& path);
  std::vector<Choice> Choices() const;
  State After(const std::vector<Choice>& choices, const std::vector<uint32_t>& chosen) const;

  Path base_;
  std::vector<Node> nodes_;  // the first is the base
};

// Makes `base` hold `state` and nothing else.
void Restore(const CrashingDisk::State& state, const Path& base);

}  // namespace syntra
