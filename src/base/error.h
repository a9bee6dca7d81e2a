// SPDX-License-Identifier: Apache-2.0
// Errors with a context stack and the process exit code they lead to.
//
// Every failure that a user can cause or meet is an `Error` with an `ExitCode`; broken invariants
// are `SYNTRA_CHECK`s (ExitCode::kInternal). `ErrorContext` objects on the stack add lines of the
// form "while reading shard X" to errors thrown below them.
#pragma once

#include <fmt/core.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

namespace syntra {

// Process exit codes, stable: scripts and schedulers depend on them.
enum class ExitCode : int {
  kDone = 0,
  kConfig = 2,  // usage or configuration, or a corpus or tokenizer named in it that does not exist
  kData = 3,    // a corpus, tokenizer or task that cannot be used, or a task's files are missing
  kResources = 4,   // disk, memory, permissions, missing packages, devices
  kCheckpoint = 5,  // no usable checkpoint, one of other settings or data, or one cannot be written
  kDiverged = 6,    // training cannot make progress; do not requeue
  kPeerLost = 7,    // another rank died or hangs
  kLocked = 8,      // another run owns the directory
  kInternal = 70,   // a bug in this program
  kRequeue = 75,    // stopped on request, all work saved; run the same command again
};

class Error : public std::runtime_error {
 public:
  // Appends the calling thread's current context stack to `message`.
  Error(ExitCode code, const std::string& message);
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

// Throws Error(code, formatted message).
template <typename... Args>
[[noreturn]] void Fail(ExitCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

// While alive, errors thrown by this thread end with "\n  while " + describe(). `describe` runs
// only when an error is made, so building a context costs nothing on the good path.
class ErrorContext {
 public:
  explicit ErrorContext(std::function<std::string()> describe);
  ~ErrorContext();
  ErrorContext(const ErrorContext&) = delete;
  ErrorContext& operator=(const ErrorContext&) = delete;

 private:
  friend class Error;
  // One "\n  while ..." line for each context alive on this thread, innermost first.
  static std::string Lines();

  std::function<std::string()> describe_;
  const ErrorContext* outer_;
};

// The contexts of the thread that makes it, for other threads that work for it while it waits.
class LentErrorContexts {
 public:
  LentErrorContexts();
  // Calls `body`, whose errors end with the lines of these contexts, too.
  template <typename Body>
  void Call(const Body& body) const {
    const Borrowed borrowed(innermost_);
    body();
  }

 private:
  class Borrowed {
   public:
    explicit Borrowed(const ErrorContext* innermost);
    ~Borrowed();
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;

   private:
    const ErrorContext* own_;
  };

  const ErrorContext* innermost_;
};

namespace internal {
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              const std::string& message);
inline std::string CheckMessage() { return {}; }
template <typename... Args>
std::string CheckMessage(fmt::format_string<Args...> format, Args&&... args) {
  return fmt::format(format, std::forward<Args>(args)...);
}
}  // namespace internal

// "No such file or directory" for ENOENT, thread safe.
std::string SystemErrorText(int error_number);

}  // namespace syntra

// Throws Error(kInternal) naming the condition and place unless `condition` holds. The optional
// rest is a format string with arguments that explains what was found.
#define SYNTRA_CHECK(condition, ...)                                                  \
  do {                                                                                \
    if (!(condition)) [[unlikely]]                                                    \
      ::syntra::internal::CheckFailed(__FILE__, __LINE__, #condition,                 \
                                      ::syntra::internal::CheckMessage(__VA_ARGS__)); \
  } while (false)
