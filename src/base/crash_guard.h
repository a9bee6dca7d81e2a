// SPDX-License-Identifier: Apache-2.0
// What a crash says, and the exit code that it leaves.
//
// Where code that is not ours reads content that is not ours (a SentencePiece model, an HDF5 file),
// damage can crash it. A CrashGuard around the call names what is read: a crash of its thread then
// ends the process with one sentence and an exit code, as an error would. A mapped file that is cut
// short is named without one. Any other crash is a bug in this program: a line says so, with the
// version and the stack, and the signal does what it always does.
#pragma once

#include <cstddef>
#include <span>

#include "base/error.h"

namespace syntra {

// While alive, a crash of this thread is put down to `name`, say "SentencePiece model" and its
// path; or to a shortage of memory, if errno says that some was refused just before. They nest, the
// innermost counts. Costs two stores; both texts must outlive it.
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

// While alive, a crash of this thread just after it was refused memory (errno tells) is put down to
// that: `library`, say "HDF5", uses what it asks for without a look at what it got. They do not
// nest.
class ShortageGuard {
 public:
  explicit ShortageGuard(const char* library) noexcept;
  ~ShortageGuard();
  ShortageGuard(const ShortageGuard&) = delete;
  ShortageGuard& operator=(const ShortageGuard&) = delete;

  // Whether this thread has one.
  static bool Exists() noexcept;
};

// While alive, a bus error inside `bytes` is put down to the file `name` that they are mapped from:
// it was cut short, which ends the process with `code`, or its disk failed (kResources).
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

// Takes over what ends a process without an exception that travels to main: the signals of a crash,
// std::terminate, a library's call of exit; the signal of the limit on file sizes (ulimit -f) is
// ignored, so that writing fails as on a full disk. For main, before it starts threads. `version`
// is a literal. A build with the address or thread sanitizer keeps the sanitizer's handlers.
void InstallCrashHandlers(const char* version);

}  // namespace syntra
