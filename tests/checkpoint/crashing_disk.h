// SPDX-License-Identifier: Apache-2.0
// What a file system may hold after a power loss: replays recorded system calls and leaves out, in
// any combination, what was not synced.
//
// The rules are the weakest that POSIX allows. fsync of a file keeps its content, not its name;
// fsync of a directory keeps the names in it. Of the changes of names since then any subset
// survives; one rename or exchange is all or nothing. Of content that was not synced there is
// nothing, half, zeros, or all.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"

namespace syntra {

// A system call as strace -y -xx prints it, decoded; descriptors are the paths behind them.
struct RecordedCall {
  std::string name;
  std::vector<std::string> arguments;
};

// The options of strace that record all that a CrashingDisk must see.
std::vector<std::string> RecordingOptions();
// The calls that succeeded and those of `access`, in the order of their ends.
std::vector<RecordedCall> ReadRecording(const Path& trace);

class CrashingDisk {
 public:
  // All that is below `base` now is on the disk.
  explicit CrashingDisk(const Path& base);

  // Throws std::runtime_error for a call below `base` whose effect is not known here.
  void Apply(const RecordedCall& call);

  // Paths relative to the base and their contents; directories end with '/'.
  using State = std::map<std::string, std::string>;
  // Without a crash.
  State Everything() const;
  // Visits every state that a crash now may leave, or `limit` of them drawn at random where there
  // are more; always that which lost and that which kept everything.
  void ForEachCrash(size_t limit, const std::function<void(const State&)>& visit) const;

 private:
  // Names in one directory that change together, and the nodes they then stand for; kGone: none.
  using Change = std::map<std::string, int>;
  static constexpr int kGone = -1;
  struct Node {
    bool is_directory = false;
    std::map<std::string, int> names, synced_names;
    std::vector<Change> changes;  // of names since the last sync
    std::string content, synced_content;
  };
  // One thing that a crash decides: of a directory whether changes[change] survives, of a file
  // which of its contents.
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
