// SPDX-License-Identifier: Apache-2.0
// The messages of crashes, and their exit codes.
//
// A damaged SentencePiece model or HDF5 file can crash the library that reads it. A CrashGuard
// around the call names what is read: a crash of its thread then ends the process with one sentence
// and an exit code, as an error would. A mapped file that is cut short is named even without a
// CrashGuard. Any other crash is a bug in this program: a line says so, with the version and the
// stack, and the signal does what it always does.
#pragma once

#include <cstddef>
#include <span>

#include "base/error.h"

namespace syntra {

// While it is alive, a crash of this thread is attributed to `kind`, such as "SentencePiece model",
// and `name`, such as its path; or to a shortage of memory, if errno says that some was refused
// just before. CrashGuards nest, and the innermost counts. A CrashGuard costs two stores; both
// texts must outlive it.
class CrashGuard {
 public:
  CrashGuard(ExitCode code, const char* kind, const char* name) noexcept;
  ~CrashGuard();
  CrashGuard(const CrashGuard&) = delete;
  CrashGuard& operator=(const CrashGuard&) = delete;

 private:
  friend struct CrashReport;
  ExitCode code_;
  const char* kind_;
  const char* name_;
  const CrashGuard* outer_;
};

// While it is alive, a crash of this thread just after memory was refused (errno tells) is
// attributed to the shortage: `library`, such as "HDF5", does not check whether it got the memory
// that it asked for. ShortageGuards do not nest.
class ShortageGuard {
 public:
  explicit ShortageGuard(const char* library) noexcept;
  ~ShortageGuard();
  ShortageGuard(const ShortageGuard&) = delete;
  ShortageGuard& operator=(const ShortageGuard&) = delete;

  // Whether this thread has one.
  static bool Exists() noexcept;
};

// While it is alive, a bus error inside `bytes` is attributed to the file `name` that they are
// mapped from: either the file was cut short, which ends the process with `code`, or its disk
// failed (kResources).
class MappedRange {
 public:
  MappedRange(std::span<const std::byte> bytes, const char* name, ExitCode code);
  ~MappedRange();
  MappedRange(const MappedRange&) = delete;
  MappedRange& operator=(const MappedRange&) = delete;

 private:
  friend struct CrashReport;
  std::span<const std::byte> bytes_;
  const char* name_;
  ExitCode code_;
  MappedRange* previous_ = nullptr;
  MappedRange* next_ = nullptr;
};

// Handles everything that ends a process without an exception that reaches main: the signals of a
// crash, std::terminate, a library's call of exit. The signal of the limit on file sizes is ignored
// (ulimit -f), so that writing fails as on a full disk. main calls it before it starts threads.
// `version` is a literal. A build with the address or thread sanitizer keeps the sanitizer's
// handlers.
void InstallCrashHandlers(const char* version);

}  // namespace syntra
