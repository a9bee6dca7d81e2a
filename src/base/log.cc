// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "base/file.h"
#include "base/output.h"
#include "base/terminal.h"

namespace syntra {
namespace {

// spdlog's own sinks throw where writing fails, follow links and make files that all may write.
class Sink : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  // `line` is `message` as it is to be written.
  virtual void Write(std::string line, const spdlog::details::log_msg& message) = 0;

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    // Paths and other words from outside must not command the terminal that shows them.
    const std::string text = PrintableLines({message.payload.data(), message.payload.size()});
    spdlog::details::log_msg printable = message;
    printable.payload = text;
    spdlog::memory_buf_t line;
    formatter_->format(printable, line);
    Write({line.data(), line.size()}, printable);
  }
  void flush_() override {}
};

const char* ColorOf(spdlog::level::level_enum level) {
  if (level >= spdlog::level::err) return "\033[31m";
  return level == spdlog::level::warn ? "\033[33m" : "";
}

// Lines above the status line, the level's name in a colour where the terminal wants it.
class StderrSink final : public Sink {
  void Write(std::string line, const spdlog::details::log_msg& message) override {
    const std::string_view color = ColorOf(message.level);
    if (colored_ && !color.empty()) {
      line.insert(message.color_range_end, "\033[0m");
      line.insert(message.color_range_start, color);
    }
    StderrLine().Print(line);
  }

  const bool colored_ = WantsColor(STDERR_FILENO);
};

class FileSink final : public Sink {
 public:
  explicit FileSink(File file) : file_(std::move(file)) {}

 private:
  void Write(std::string line, const spdlog::details::log_msg&) override {
    try {
      file_.Write(line);
    } catch (const Error& error) {
      if (std::exchange(warned_, true)) return;
      PrintNote(fmt::format("warning: {}; lines of this log are lost", error.what()));
    }
  }

  File file_;
  bool warned_ = false;
};

std::shared_ptr<spdlog::logger> MakeLogger(std::vector<spdlog::sink_ptr> sinks) {
  auto logger = std::make_shared<spdlog::logger>("syntra", sinks.begin(), sinks.end());
  // Lines that there is no memory for are lost; the run goes on.
  logger->set_error_handler([](const std::string&) {});
  logger->set_pattern("%H:%M:%S %^%l%$ %v");
  return logger;
}

std::shared_ptr<spdlog::logger>& Holder() {
  static std::shared_ptr<spdlog::logger> logger = MakeLogger({std::make_shared<StderrSink>()});
  return logger;
}

}  // namespace

spdlog::logger& Log() {
  const int error_number = errno;
  spdlog::logger& logger = *Holder();
  errno = error_number;  // the first call asks the terminal
  return logger;
}

bool WarnOnce(const std::string& text) {
  static std::mutex mutex;
  static std::set<std::string> logged;
  {
    const std::lock_guard lock(mutex);
    if (!logged.insert(text).second) return false;
  }
  Log().warn("{}", text);
  return true;
}

std::string RankLogName(int rank) { return fmt::format("rank-{:04}.log", rank); }

void SetUpLogging(int rank, const std::filesystem::path& directory) {
  std::vector<spdlog::sink_ptr> sinks;
  if (rank == 0) sinks.push_back(std::make_shared<StderrSink>());
  std::string problem;
  if (!directory.empty()) {
    try {
      sinks.push_back(
          std::make_shared<FileSink>(File::OpenForAppend(directory / RankLogName(rank))));
    } catch (const Error& error) {
      problem = error.what();
    }
  }
  Holder() = MakeLogger(std::move(sinks));
  if (problem.empty()) return;
  // Only rank 0 has another place for its lines.
  if (rank == 0) return Log().warn("no log file: {}", problem);
  PrintNote(fmt::format("warning: rank {} has no log file: {}", rank, problem));
}

void NoteInLogFile(const std::string& message) {
  for (const spdlog::sink_ptr& sink : Log().sinks()) {
    if (!dynamic_cast<FileSink*>(sink.get())) continue;
    sink->log({"syntra", spdlog::level::err, message});
  }
}

}  // namespace syntra
