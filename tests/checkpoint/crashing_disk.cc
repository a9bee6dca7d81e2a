// SPDX-License-Identifier: Apache-2.0
#include "tests/checkpoint/crashing_disk.h"

#include <algorithm>
#include <fstream>
#include <random>
#include <set>
#include <stdexcept>

namespace syntra {
namespace {

// Decodes the output of strace -xx, which writes every byte as \xHH.
std::string Decode(std::string_view text) {
  std::string bytes;
  for (size_t i = 0; i + 4 <= text.size(); i += 4) {
    bytes += static_cast<char>(std::stoi(std::string(text.substr(i + 2, 2)), nullptr, 16));
  }
  return bytes;
}

std::string DecodeArgument(const std::string& argument) {
  if (argument.starts_with('"')) {
    if (!argument.ends_with('"')) throw std::runtime_error("strace cut a string: use a larger -s");
    return Decode(std::string_view(argument).substr(1, argument.size() - 2));
  }
  const size_t path = argument.find('<'), end = argument.find('>');
  if (path == argument.npos || end == argument.npos) return argument;
  return Decode(std::string_view(argument).substr(path + 1, end - path - 1));
}

// "NAME(ARGUMENTS) = RESULT", with more spaces before the '=' where strace aligns results.
bool ParseCall(const std::string& line, RecordedCall* call) {
  const size_t open = line.find('('), equals = line.rfind(" = ");
  if (open == line.npos || equals == line.npos) return false;
  const size_t close = line.find_last_not_of(' ', equals);
  if (close < open || line[close] != ')') return false;
  call->name = line.substr(0, open);
  const bool failed = line[equals + 3] == '-' || line[equals + 3] == '?';
  if (failed && call->name != "access") return false;
  for (std::string_view rest = std::string_view(line).substr(open + 1, close - open - 1);;) {
    const size_t comma = rest.find(", ");
    call->arguments.push_back(DecodeArgument(std::string(rest.substr(0, comma))));
    if (comma == rest.npos) return true;
    rest.remove_prefix(comma + 2);
  }
}

bool Has(const std::string& flags, const char* flag) { return flags.find(flag) != flags.npos; }

// The path that a pair of directory and path means.
Path At(const RecordedCall& call, size_t directory) {
  return Path(call.arguments[directory]) / call.arguments[directory + 1];
}

// The possible contents after a crash if only `synced` was synced.
std::string Survivor(const std::string& synced, const std::string& content, uint32_t option) {
  const size_t kept = content.starts_with(synced) ? synced.size() : 0;
  switch (option) {
    case 0:
      return synced;
    case 1:
      return content.substr(0, kept + (content.size() - kept) / 2);
    case 2:
      return content.substr(0, kept) + std::string(content.size() - kept, '\0');
    default:
      return content;
  }
}

}  // namespace

std::vector<std::string> RecordingOptions() {
  return {
      "-f",
      "-y",
      "-xx",
      "-s",
      "100000000",
      "-e",
      "signal=none",
      "-e",
      "trace=access,open,openat,creat,write,pwrite64,writev,pwritev,pwritev2,ftruncate,truncate,"
      "fallocate,copy_file_range,sendfile,fsync,fdatasync,sync_file_range,mkdir,mkdirat,rename,"
      "renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,rmdir"};
}

std::vector<RecordedCall> ReadRecording(const Path& trace) {
  std::vector<RecordedCall> calls;
  std::map<std::string, std::string> unfinished;  // by thread
  std::ifstream lines(trace);
  for (std::string line; std::getline(lines, line);) {
    std::string thread;
    if (const size_t digits = line.find_first_not_of("0123456789"); digits > 0) {
      thread = line.substr(0, digits);
      line.erase(0, line.find_first_not_of(' ', digits));
    }
    if (const size_t cut = line.find(" <unfinished ...>"); cut != line.npos) {
      unfinished[thread] = line.substr(0, cut);
      continue;
    }
    if (line.starts_with("<... ")) {
      line = unfinished[thread] + line.substr(line.find('>') + 1);
    }
    if (RecordedCall call; ParseCall(line, &call)) calls.push_back(std::move(call));
  }
  return calls;
}

CrashingDisk::CrashingDisk(const Path& base) : base_(base) { Load(base); }

int CrashingDisk::Load(const Path& path) {
  const int index = static_cast<int>(nodes_.size());
  nodes_.push_back({.is_directory = std::filesystem::is_directory(path)});
  if (!nodes_[index].is_directory) {
    nodes_[index].content = nodes_[index].synced_content = ReadWholeFile(path);
    return index;
  }
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    const int child = Load(entry.path());
    nodes_[index].names[entry.path().filename()] = child;
  }
  nodes_[index].synced_names = nodes_[index].names;
  return index;
}

bool CrashingDisk::IsBelowBase(const Path& path) const {
  return path == base_ || path.string().starts_with(base_.string() + "/");
}

int CrashingDisk::Find(const Path& path) const {
  if (!IsBelowBase(path)) return kGone;
  int node = 0;
  for (const Path& part : path.lexically_relative(base_)) {
    if (part == "." || part.empty()) continue;
    const auto name = nodes_[node].names.find(part);
    if (name == nodes_[node].names.end()) return kGone;
    node = name->second;
  }
  return node;
}

void CrashingDisk::ChangeNames(const Path& directory, const Change& change) {
  Node& node = nodes_.at(Find(directory));
  for (const auto& [name, target] : change) {
    if (target == kGone) {
      node.names.erase(name);
    } else {
      node.names[name] = target;
    }
  }
  node.changes.push_back(change);
}

void CrashingDisk::Create(const Path& path, bool is_directory) {
  if (!IsBelowBase(path) || Find(path) != kGone) return;
  nodes_.push_back({.is_directory = is_directory});
  ChangeNames(path.parent_path(), {{path.filename(), static_cast<int>(nodes_.size()) - 1}});
}

void CrashingDisk::Remove(const Path& path) {
  if (IsBelowBase(path)) ChangeNames(path.parent_path(), {{path.filename(), kGone}});
}

void CrashingDisk::Rename(const Path& from, const Path& to, bool exchange) {
  if (!IsBelowBase(from) && !IsBelowBase(to)) return;
  if (from.parent_path() != to.parent_path()) {
    throw std::runtime_error("a rename between directories: " + from.string());
  }
  ChangeNames(from.parent_path(),
              {{from.filename(), exchange ? Find(to) : kGone}, {to.filename(), Find(from)}});
}

void CrashingDisk::Write(const Path& path, size_t offset, const std::string& bytes) {
  const int node = Find(path);
  if (node == kGone) return;
  std::string& content = nodes_[node].content;
  if (content.size() < offset + bytes.size()) content.resize(offset + bytes.size());
  content.replace(offset, bytes.size(), bytes);
}

void CrashingDisk::Sync(const Path& path) {
  const int index = Find(path);
  if (index == kGone) return;
  Node& node = nodes_[index];
  node.synced_content = node.content;
  node.synced_names = node.names;
  node.changes.clear();
}

void CrashingDisk::Apply(const RecordedCall& call) {
  const std::string& name = call.name;
  const std::vector<std::string>& arguments = call.arguments;
  const auto size = [&](const Path& path) {
    const int node = Find(path);
    return node == kGone ? 0 : nodes_[node].content.size();
  };
  if (name == "openat") {
    if (Has(arguments[2], "O_CREAT")) Create(At(call, 0), false);
    if (Has(arguments[2], "O_TRUNC") && size(At(call, 0)) > 0) {
      nodes_[Find(At(call, 0))].content.clear();
    }
  } else if (name == "write") {
    Write(arguments[0], size(arguments[0]), arguments[1]);
  } else if (name == "pwrite64") {
    Write(arguments[0], std::stoull(arguments[3]), arguments[1]);
  } else if (name == "ftruncate") {
    if (const int node = Find(arguments[0]); node != kGone) {
      nodes_[node].content.resize(std::stoull(arguments[1]));
    }
  } else if (name == "fsync") {
    Sync(arguments[0]);
  } else if (name == "mkdir") {
    Create(arguments[0], true);
  } else if (name == "rename") {
    Rename(arguments[0], arguments[1], false);
  } else if (name == "renameat2") {
    Rename(At(call, 0), At(call, 2), Has(arguments[4], "RENAME_EXCHANGE"));
  } else if (name == "unlink" || name == "rmdir") {
    Remove(arguments[0]);
  } else if (name == "unlinkat") {
    Remove(At(call, 0));
  } else if (name != "access") {
    for (const std::string& argument : arguments) {
      if (IsBelowBase(argument)) throw std::runtime_error("an unknown call: " + name);
    }
  }
}

std::vector<CrashingDisk::Choice> CrashingDisk::Choices() const {
  std::vector<Choice> choices;
  std::set<int> reached{0};
  std::vector<int> open{0};
  const auto reach = [&](const auto& names) {
    for (const auto& [name, node] : names) {
      if (node != kGone && reached.insert(node).second) open.push_back(node);
    }
  };
  while (!open.empty()) {
    const int index = open.back();
    open.pop_back();
    const Node& node = nodes_[index];
    if (node.content != node.synced_content) choices.push_back({index, 0, 4});
    reach(node.synced_names);
    for (size_t i = 0; i < node.changes.size(); ++i) {
      choices.push_back({index, i, 2});
      reach(node.changes[i]);
    }
  }
  return choices;
}

CrashingDisk::State CrashingDisk::After(const std::vector<Choice>& choices,
                                        const std::vector<uint32_t>& chosen) const {
  std::map<int, std::map<std::string, int>> names;
  std::map<int, std::string> contents;
  for (size_t i = 0; i < choices.size(); ++i) {
    const auto [index, change, options] = choices[i];
    const Node& node = nodes_[index];
    if (!node.is_directory) {
      contents[index] = Survivor(node.synced_content, node.content, chosen[i]);
      continue;
    }
    auto& survivors = names.try_emplace(index, node.synced_names).first->second;
    if (chosen[i] == 0) continue;
    for (const auto& [name, target] : node.changes[change]) survivors[name] = target;
  }
  State state;
  const std::function<void(int, const std::string&)> add = [&](int index, const std::string& path) {
    const Node& node = nodes_[index];
    if (!node.is_directory) {
      const auto content = contents.find(index);
      state[path] = content == contents.end() ? node.synced_content : content->second;
      return;
    }
    if (!path.empty()) state[path + "/"] = "";
    const auto changed = names.find(index);
    for (const auto& [name, child] : changed == names.end() ? node.synced_names : changed->second) {
      if (child != kGone) add(child, path.empty() ? name : path + "/" + name);
    }
  };
  add(0, "");
  return state;
}

CrashingDisk::State CrashingDisk::Everything() const {
  const std::vector<Choice> choices = Choices();
  std::vector<uint32_t> chosen;
  for (const Choice& choice : choices) chosen.push_back(choice.options - 1);
  return After(choices, chosen);
}

void CrashingDisk::ForEachCrash(size_t limit,
                                const std::function<void(const State&)>& visit) const {
  const std::vector<Choice> choices = Choices();
  size_t states = 1;
  for (const Choice& choice : choices) states = std::min(states * choice.options, limit + 1);
  std::vector<uint32_t> chosen(choices.size(), 0);
  if (states <= limit) {
    for (size_t state = 0; state < states; ++state) {
      size_t rest = state;
      for (size_t i = 0; i < choices.size(); ++i) {
        chosen[i] = static_cast<uint32_t>(rest % choices[i].options);
        rest /= choices[i].options;
      }
      visit(After(choices, chosen));
    }
    return;
  }
  visit(After(choices, chosen));
  visit(Everything());
  std::mt19937 random(static_cast<uint32_t>(choices.size()));
  for (size_t state = 2; state < limit; ++state) {
    for (size_t i = 0; i < choices.size(); ++i) chosen[i] = random() % choices[i].options;
    visit(After(choices, chosen));
  }
}

void Restore(const CrashingDisk::State& state, const Path& base) {
  std::filesystem::remove_all(base);
  std::filesystem::create_directories(base);
  // Directories sort before what is in them.
  for (const auto& [path, content] : state) {
    if (path.ends_with('/')) {
      std::filesystem::create_directories(base / path);
    } else {
      std::ofstream(base / path, std::ios::binary) << content;
    }
  }
}

}  // namespace syntra
