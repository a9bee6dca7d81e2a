#include "base/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <memory>
#include <vector>

namespace syntra {
namespace {

std::shared_ptr<spdlog::logger> MakeLogger(std::vector<spdlog::sink_ptr> sinks) {
  auto logger = std::make_shared<spdlog::logger>("syntra", sinks.begin(), sinks.end());
  // A full disk or a closed stderr must not end a run that trains correctly.
  logger->set_error_handler([](const std::string&) {});
  logger->set_pattern("%H:%M:%S %^%l%$ %v");
  logger->flush_on(spdlog::level::warn);
  return logger;
}

std::shared_ptr<spdlog::logger>& Holder() {
  static std::shared_ptr<spdlog::logger> logger =
      MakeLogger({std::make_shared<spdlog::sinks::stderr_sink_mt>()});
  return logger;
}

}  // namespace

spdlog::logger& Log() { return *Holder(); }

void SetUpLogging(int rank, const std::filesystem::path& directory) {
  std::vector<spdlog::sink_ptr> sinks;
  if (rank == 0) sinks.push_back(std::make_shared<spdlog::sinks::stderr_sink_mt>());
  std::string problem;
  if (!directory.empty()) {
    try {
      sinks.push_back(std::make_shared<spdlog::sinks::basic_file_sink_mt>(
          (directory / fmt::format("rank-{:04}.log", rank)).string()));
    } catch (const spdlog::spdlog_ex& error) {
      problem = error.what();
    }
  }
  Holder() = MakeLogger(std::move(sinks));
  if (!problem.empty()) Log().warn("no log file: {}", problem);
}

}  // namespace syntra
