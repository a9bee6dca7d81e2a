#include "base/log.h"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <vector>

namespace syntra {
namespace {

// A closed stderr must not end a run.
void WriteToStderr(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(written);
  }
}

const char* ColorOf(spdlog::level::level_enum level) {
  if (level >= spdlog::level::err) return "\033[31m";
  return level == spdlog::level::warn ? "\033[33m" : "";
}

// Lines above the status line, the level's name in a colour where the terminal wants it.
class StderrSink : public spdlog::sinks::base_sink<std::mutex> {
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t buffer;
    formatter_->format(message, buffer);
    std::string text = fmt::to_string(buffer);
    const std::string_view color = ColorOf(message.level);
    if (colored_ && !color.empty()) {
      text.insert(message.color_range_end, "\033[0m");
      text.insert(message.color_range_start, color);
    }
    StderrLine().Print(text);
  }
  void flush_() override {}

  const bool colored_ = WantsColor(STDERR_FILENO);
};

std::shared_ptr<spdlog::logger> MakeLogger(std::vector<spdlog::sink_ptr> sinks) {
  auto logger = std::make_shared<spdlog::logger>("syntra", sinks.begin(), sinks.end());
  // A full disk or a closed stderr must not end a run that trains correctly.
  logger->set_error_handler([](const std::string&) {});
  logger->set_pattern("%H:%M:%S %^%l%$ %v");
  logger->flush_on(spdlog::level::warn);
  return logger;
}

std::shared_ptr<spdlog::logger>& Holder() {
  static std::shared_ptr<spdlog::logger> logger = MakeLogger({std::make_shared<StderrSink>()});
  return logger;
}

}  // namespace

spdlog::logger& Log() { return *Holder(); }

StatusLine& StderrLine() {
  // Never destroyed: what is logged while the program ends is written through it.
  static StatusLine& line = *new StatusLine(WriteToStderr);
  return line;
}

void SetUpLogging(int rank, const std::filesystem::path& directory) {
  std::vector<spdlog::sink_ptr> sinks;
  if (rank == 0) sinks.push_back(std::make_shared<StderrSink>());
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
