// SPDX-License-Identifier: Apache-2.0
#include "train/run_directory.h"

#include <random>

#include "base/error.h"
#include "base/host.h"
#include "base/json.h"
#include "base/log.h"
#include "base/version.h"
#include "config/print.h"

namespace syntra {
namespace {

// Names the run; decides nothing about its numbers.
std::string NewRunId() {
  std::random_device entropy;
  return fmt::format("{:08x}{:08x}", entropy(), entropy());
}

std::string ExistingRunId(const Path& file) {
  const std::optional<std::string> text = ReadOwnFile(file, 1 << 20);
  if (!text) return {};
  try {
    return ParseJson(*text).at("run_id").get<std::string>();
  } catch (const Json::exception& error) {
    Log().warn("{} is damaged, and the run gets a new id ({})", file.string(), error.what());
    return {};
  }
}

}  // namespace

double BytesBelow(const Path& path) {
  double bytes = 0;
  std::error_code code;
  if (std::filesystem::is_regular_file(path, code)) {
    const auto size = std::filesystem::file_size(path, code);
    return code ? 0 : static_cast<double>(size);
  }
  for (auto entry = std::filesystem::recursive_directory_iterator(path, code);
       !code && entry != std::filesystem::recursive_directory_iterator(); entry.increment(code)) {
    std::error_code gone;
    const auto size = entry->is_regular_file(gone) ? entry->file_size(gone) : 0;
    if (!gone) bytes += static_cast<double>(size);
  }
  return bytes;
}

std::string RunIdOf(const RunDirectory& directory) {
  const std::string id = ExistingRunId(directory.description());
  return id.empty() ? NewRunId() : id;
}

void DescribeRun(const RunDirectory& directory, const std::string& run_id, const Config& config,
                 int ranks, const std::string& initial) {
  std::error_code code;  // the working directory may have been removed
  Json json{{"run_id", run_id},
            {"version", Version()},
            {"host", HostName()},
            {"ranks", ranks},
            {"command", CommandLineWords()},
            {"working_directory", std::filesystem::current_path(code).string()},
            {"config_digest", ConfigDigest(config)}};
  if (!initial.empty()) json["initial"] = initial;
  ReplaceFileDurably(directory.description(), JsonText(json, 2) + "\n");
  ReplaceFileDurably(directory.config(), FullConfigText(config));
}

}  // namespace syntra
