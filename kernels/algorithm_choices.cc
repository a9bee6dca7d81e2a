// SPDX-License-Identifier: Apache-2.0
#include "kernels/algorithm_choices.h"

#include <algorithm>
#include <chrono>

#include "base/file_lock.h"
#include "base/json.h"
#include "base/log.h"
#include "core/random.h"
#include "kernels/bfloat16.h"

namespace syntra {
namespace {

using Table = std::map<std::string, std::string>;

constexpr int64_t kMostBytes = 16 << 20;  // of a file: some 50,000 choices

// Other processes hold the lock for the milliseconds in which a small file is read or written.
FileLock Lock(const Path& file) {
  Path path = file;
  path += ".lock";
  if (auto lock = FileLock::TryFor(path, std::chrono::seconds(5))) return *std::move(lock);
  Fail(ExitCode::kResources, "another process does not let go of {}", path.string());
}

Table Read(const Path& file) {
  const std::optional<std::string> text = ReadOwnFile(file, kMostBytes);
  if (!text) return {};
  const Json json = TryParseJson(*text);
  if (!json.is_object()) {
    Log().info("{} is damaged; algorithms are chosen anew", file.string());
    return {};
  }
  Table table;
  for (const auto& [problem, algorithm] : json.items()) {
    if (algorithm.is_string()) table[problem] = algorithm.get<std::string>();
  }
  return table;
}

// What is remembered where no algorithm was measured: no algorithm has this name, so the first is
// taken.
constexpr const char* kUnmeasured = "not measured";

// Adds to the file what it lacks, and takes what it has. `for_all`: the file is not that of a run,
// which stays with what it began with.
void Merge(const Path& file, bool for_all, Table& chosen) {
  const FileLock lock = Lock(file);
  Table there = Read(file);
  const size_t known = there.size();
  for (const auto& [problem, algorithm] : chosen) {
    if (!for_all || algorithm != kUnmeasured) there.emplace(problem, algorithm);
  }
  if (there.size() > known) ReplaceFileDurably(file, JsonText(Json(there), 1) + '\n');
  there.insert(chosen.begin(), chosen.end());
  chosen = std::move(there);
}

// The first of those that are within the noise of the clock.
size_t FastestOf(const std::vector<double>& seconds) {
  constexpr double kNoise = 0.02;
  size_t fastest = 0;
  for (size_t i = 1; i < seconds.size(); ++i) {
    if (seconds[i] < (1 - kNoise) * seconds[fastest]) fastest = i;
  }
  return fastest;
}

}  // namespace

void AlgorithmChoices::Agree() {
  std::erase_if(files_, [this](const Path& file) {
    try {
      Merge(file, file == user_file_, chosen_);
      return false;
    } catch (const Error& error) {
      Log().info("{} does not remember choices of algorithms: {}", file.string(), error.what());
      return true;
    }
  });
}

AlgorithmChoices::AlgorithmChoices(Path user_file) : user_file_(std::move(user_file)) {
  if (user_file_.empty()) return;
  try {
    CreateDirectories(user_file_.parent_path());
  } catch (const Error& error) {
    Log().info("no choices of algorithms are remembered: {}", error.what());
    user_file_.clear();
    return;
  }
  files_ = {user_file_};
  Agree();
}

void AlgorithmChoices::KeepIn(const Path& run_file) {
  chosen_.clear();
  files_.clear();
  if (!user_file_.empty()) files_.push_back(user_file_);
  files_.push_back(run_file);
  Agree();
}

size_t AlgorithmChoices::Choose(const std::string& problem, std::span<const std::string> algorithms,
                                const std::function<std::vector<double>()>& measure) {
  if (!chosen_.contains(problem)) Agree();  // another process may have chosen
  if (!chosen_.contains(problem)) {
    if (files_.empty()) return 0;
    const std::vector<double> seconds = measure();
    chosen_[problem] = seconds.empty() ? kUnmeasured : algorithms[FastestOf(seconds)];
    Agree();
    if (files_.empty()) {
      chosen_.erase(problem);
      return 0;
    }
  }
  const auto chosen = std::ranges::find(algorithms, chosen_.at(problem));
  return chosen == algorithms.end() ? 0 : chosen - algorithms.begin();
}

Path UserAlgorithmsFile(const std::function<const char*(const char*)>& variable) {
  constexpr auto kFile = "syntra/algorithms.json";
  if (const char* cache = variable("XDG_CACHE_HOME"); cache && *cache == '/')
    return Path(cache) / kFile;
  if (const char* home = variable("HOME"); home && *home == '/')
    return Path(home) / ".cache" / kFile;
  return {};
}

std::vector<BFloat16> MeasuringValues(size_t count) {
  std::vector<BFloat16> values;
  for (uint64_t counter = 0; values.size() < count; ++counter) {
    for (const uint32_t bits : RandomAt({}, counter)) {
      if (values.size() < count) values.push_back(ToBFloat16((UniformFloat(bits) - 0.5f) / 4));
    }
  }
  return values;
}

}  // namespace syntra
