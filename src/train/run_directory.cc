#include "train/run_directory.h"

#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "base/host.h"
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
  const auto json = nlohmann::json::parse(ReadWholeFile(file, 1 << 20), nullptr, false);
  if (!json.is_object() || !json.contains("run_id") || !json["run_id"].is_string()) {
    Log().warn("{} is not readable; the run gets a new id", file.string());
    return {};
  }
  return json["run_id"].get<std::string>();
}

}  // namespace

std::string RunIdOf(const RunDirectory& directory) {
  const std::string id = ExistingRunId(directory.root / "run.json");
  return id.empty() ? NewRunId() : id;
}

void DescribeRun(const RunDirectory& directory, const std::string& run_id, const Config& config,
                 int ranks) {
  const nlohmann::ordered_json json{{"run_id", run_id},
                                    {"version", SYNTRA_VERSION},
                                    {"host", HostName()},
                                    {"ranks", ranks},
                                    {"config_digest", ConfigDigest(config)}};
  ReplaceFileDurably(directory.root / "run.json", json.dump(2) + "\n");
  ReplaceFileDurably(directory.root / "config.textproto", FullConfigText(config));
}

}  // namespace syntra
