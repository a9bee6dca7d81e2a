#include "train/run_directory.h"

#include <random>

#include "base/error.h"
#include "base/host.h"
#include "base/json.h"
#include "base/log.h"
#include "config/print.h"

namespace syntra {
namespace {

// Names the run; decides nothing about its numbers.
std::string NewRunId() {
  std::random_device entropy;
  return fmt::format("{:08x}{:08x}", entropy(), entropy());
}

std::string ExistingRunId(const Path& file) {
  std::error_code code;
  if (!std::filesystem::exists(file, code)) return {};
  try {
    return ParseJson(ReadWholeFile(file, 1 << 20)).at("run_id").get<std::string>();
  } catch (const Json::exception& error) {
    Log().warn("{} is not readable, and the run gets a new id: {}", file.string(), error.what());
    return {};
  }
}

}  // namespace

std::string RunIdOf(const RunDirectory& directory) {
  const std::string id = ExistingRunId(directory.root / "run.json");
  return id.empty() ? NewRunId() : id;
}

void DescribeRun(const RunDirectory& directory, const std::string& run_id, const Config& config,
                 int ranks, const std::string& initial) {
  Json json{{"run_id", run_id},
            {"version", SYNTRA_VERSION},
            {"host", HostName()},
            {"ranks", ranks},
            {"config_digest", ConfigDigest(config)}};
  if (!initial.empty()) json["initial"] = initial;
  ReplaceFileDurably(directory.root / "run.json", JsonText(json, 2) + "\n");
  ReplaceFileDurably(directory.root / "config.textproto", FullConfigText(config));
}

}  // namespace syntra
