// SPDX-License-Identifier: Apache-2.0
#include "base/crash_guard.h"

#include <execinfo.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>

#include "base/failure.h"
#include "base/memory_limits.h"
#include "base/output.h"
#include "base/terminal.h"

namespace syntra {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

// Signal handlers can reach nothing but globals.
thread_local const CrashGuard* innermost_guard = nullptr;
// The library that a ShortageGuard is around: it crashes where memory is refused. Null: none.
thread_local const char* careless_library = nullptr;
std::atomic<MappedRange*> first_range{nullptr};
std::mutex range_mutex;  // of changes to the list; a crash reads it as it is
const char* program_version = "?";
std::atomic<pid_t> crashed_thread{0};

// Pieces of text, written without memory of the heap.
template <typename... Parts>
void WriteParts(Parts... parts) {
  char line[1024];
  size_t size = 0;
  const auto add = [&](const char* part) {
    for (; *part && size < sizeof line - 1; ++part) {
      // A path may hold anything.
      const auto byte = static_cast<unsigned char>(*part);
      line[size++] = byte < 0x20 || byte == 0x7f ? '?' : *part;
    }
  };
  (add(parts), ...);
  line[size++] = '\n';
  StderrLine().PrintBelow({line, size});
}

struct Decimal {
  explicit Decimal(uint64_t value) {
    do *--begin = static_cast<char>('0' + value % 10);
    while (value /= 10);
  }
  char digits[24] = {};
  char* begin = digits + sizeof digits - 1;
};

// Whether there is no room for another piece of 64 MiB: then a library that crashes has most likely
// used memory that it was refused.
bool MemoryIsShort() {
  constexpr size_t kProbe = size_t{64} << 20;
  void* probe =
      mmap(nullptr, kProbe, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (probe == MAP_FAILED) return true;
  munmap(probe, kProbe);
  return false;
}

[[noreturn]] void EndOutOfMemory() {
  const char* in = careless_library ? " in " : "";
  const char* library = careless_library ? careless_library : "";
  if (const auto limit = AddressSpaceLimit()) {
    WriteParts("error: out of memory", in, library, ": ulimit -v allows ",
               Decimal(*limit >> 20).begin, " MiB of address space");
  } else {
    WriteParts("error: out of memory", in, library);
  }
  _exit(static_cast<int>(ExitCode::kResources));
}

// Ends the process if its stacks, and those of its threads, have less room than any library minds.
void EndIfStackIsShort() {
  constexpr rlim_t kEnough = rlim_t{256} << 10;
  rlimit limit;
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= kEnough) return;
  WriteParts("error: the stack is too small: ulimit -s allows ",
             Decimal(limit.rlim_cur >> 10).begin, " KiB; allow ", Decimal(kEnough >> 10).begin,
             " or more");
  _exit(static_cast<int>(ExitCode::kResources));
}

}  // namespace

struct CrashReport {
  // Ends the process if a mapped file is to blame for a fault at `address`.
  static void EndIfMapped(const void* address) {
    const auto* byte = static_cast<const std::byte*>(address);
    for (const MappedRange* range = first_range; range; range = range->next_) {
      if (byte < range->bytes_.data() || byte >= range->bytes_.data() + range->bytes_.size()) {
        continue;
      }
      struct stat status;
      const uint64_t size = range->bytes_.size();
      if (stat(range->name_, &status) == 0 && static_cast<uint64_t>(status.st_size) < size) {
        WriteParts("error: ", range->name_, " was cut short while it was in use: from ",
                   Decimal(size).begin, " bytes to ", Decimal(status.st_size).begin);
        _exit(static_cast<int>(range->code_));
      }
      WriteParts("error: cannot read ", range->name_,
                 ": its disk failed, or it was replaced while it was in use");
      _exit(static_cast<int>(ExitCode::kResources));
    }
  }

  // Ends the process if this thread reads something that is guarded.
  static void EndIfGuarded() {
    const CrashGuard* guard = innermost_guard;
    if (!guard) return;
    WriteParts("error: the ", guard->kind_, " ", guard->name_,
               " is damaged: reading it crashed; restore it");
    _exit(static_cast<int>(guard->code_));
  }
};

namespace {

// Several threads may meet the same fault: the first one speaks, the others wait for its end.
void ReportAloneOrWait(int signal) {
  const pid_t self = gettid();
  pid_t first = 0;
  if (crashed_thread.compare_exchange_strong(first, self)) return;
  if (first != self) {
    for (;;) pause();
  }
  // This handler itself has crashed.
  ::signal(signal, SIG_DFL);
  raise(signal);
}

void OnCrash(int signal, siginfo_t* info, void*) {
  const bool refused = errno == ENOMEM;
  ReportAloneOrWait(signal);
  if (signal == SIGBUS) CrashReport::EndIfMapped(info->si_addr);
  // Libraries crash or give up soon after a refusal: some while they tidy up after it.
  const bool in_library = careless_library || innermost_guard || signal == SIGABRT;
  if (MemoryIsShort() || (refused && in_library)) EndOutOfMemory();
  if (signal == SIGSEGV) EndIfStackIsShort();
  CrashReport::EndIfGuarded();
  WriteParts("error: crash (SIG", sigabbrev_np(signal), ") of syntra ", program_version,
             ", a bug in this program; please report these lines:");
  void* frames[64];
  backtrace_symbols_fd(frames, backtrace(frames, 64), STDERR_FILENO);
  // Once more, with the default action, which may write a core.
  ::signal(signal, SIG_DFL);
  raise(signal);
}

// Ends the process when a library gives up without a code that says why. Most often memory or
// threads could not be had.
[[noreturn]] void EndByLibrary() {
  if (errno == ENOMEM) EndOutOfMemory();
  CrashReport::EndIfGuarded();
  WriteParts(
      "error: a library could not go on; its reason, if it gave one, is above. Most often "
      "memory or threads could not be had (ulimit -v, ulimit -u, or a container's limits)");
  _exit(static_cast<int>(ExitCode::kResources));
}

// An exception that nothing can catch: from a thread, a parallel region, a noexcept function.
[[noreturn]] void OnTerminate() {
  if (std::current_exception()) {
    const Failure failure = CurrentFailure();
    PrintError(failure.message);
    if (failure.code != ExitCode::kInternal) _exit(static_cast<int>(failure.code));
  }
  // On its way through a library's noexcept code, it is not shown to us.
  if (!std::current_exception() && std::uncaught_exceptions() > 0) EndByLibrary();
  std::abort();
}

// Libraries that give up end the process themselves, with codes that say nothing: OpenMP's without
// memory or threads, SentencePiece where it checks itself. This program never ends with these.
void OnExit(int status, void*) {
  if (status == EXIT_FAILURE || status == -1 || status == 255) EndByLibrary();
}

}  // namespace

CrashGuard::CrashGuard(ExitCode code, const char* kind, const char* name) noexcept
    : code_(code), kind_(kind), name_(name), outer_(innermost_guard) {
  innermost_guard = this;
}

CrashGuard::~CrashGuard() { innermost_guard = outer_; }

ShortageGuard::ShortageGuard(const char* library) noexcept { careless_library = library; }

ShortageGuard::~ShortageGuard() { careless_library = nullptr; }
bool ShortageGuard::Exists() noexcept { return careless_library != nullptr; }

MappedRange::MappedRange(std::span<const std::byte> bytes, const char* name, ExitCode code)
    : bytes_(bytes), name_(name), code_(code) {
  const std::lock_guard lock(range_mutex);
  next_ = first_range;
  if (next_) next_->previous_ = this;
  first_range = this;
}

MappedRange::~MappedRange() {
  const std::lock_guard lock(range_mutex);
  if (next_) next_->previous_ = previous_;
  if (previous_) {
    previous_->next_ = next_;
  } else {
    first_range = next_;
  }
}

void InstallCrashHandlers(const char* version) {
  program_version = version;
  StderrLine();  // made now: handlers must not
  std::set_terminate(OnTerminate);
  on_exit(OnExit, nullptr);
  ::signal(SIGXFSZ, SIG_IGN);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  // The first call loads what unwinding needs, which a handler must not do.
  void* frame;
  backtrace(&frame, 1);
  // The signal stack of the main thread, whose own stack may be what cannot grow.
  static std::byte stack[64 << 10];
  stack_t alternate = {};
  alternate.ss_sp = stack;
  alternate.ss_size = sizeof stack;
  sigaltstack(&alternate, nullptr);
  for (const int signal : kSignals) {
    struct sigaction action = {};
    action.sa_sigaction = OnCrash;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, nullptr);
  }
  // Open MPI would warn that it finds handlers where it wants to set its own.
  setenv("OMPI_MCA_opal_signal", "", /*overwrite=*/0);
#endif
}

}  // namespace syntra
