// SPDX-License-Identifier: Apache-2.0
#include "base/failure.h"

#include <cstdio>
#include <new>
#include <system_error>

#include "base/memory_limits.h"
#include "base/text.h"

namespace syntra {
namespace {

// Errors of the standard library's calls, and of printing.
std::string Describe(const std::system_error& error) {
  if (std::ferror(stdout)) {
    return fmt::format("cannot write to standard output: {}", error.code().message());
  }
  if (error.code() == std::errc::resource_unavailable_try_again) {
    return fmt::format(
        "cannot start a thread: {}; allow more processes (ulimit -u) or memory, or set fewer "
        "threads{}",
        error.code().message(), MemoryLimitNote());
  }
  return error.what();
}

Failure Describe() {
  try {
    throw;
  } catch (const Error& error) {
    return {error.code(), error.what()};
  } catch (const std::bad_alloc&) {
    return {ExitCode::kResources, "out of memory" + MemoryLimitNote()};
  } catch (const std::system_error& error) {
    return {ExitCode::kResources, Describe(error)};
  } catch (const std::exception& error) {
    return {ExitCode::kInternal, fmt::format("{} (a bug in this program)", error.what())};
  } catch (...) {
    return {ExitCode::kInternal, "unknown exception (a bug in this program)"};
  }
}

}  // namespace

Failure CurrentFailure() noexcept {
  try {
    return Describe();
  } catch (...) {
    // No memory even for the message; this one fits into the string object itself.
    return {ExitCode::kResources, "out of memory"};
  }
}

OutOfMemory::OutOfMemory(const std::string& message)
    : Error(ExitCode::kResources, message + MemoryLimitNote()) {}

std::string MemoryLimitNote() {
  const auto limit = AddressSpaceLimit();
  if (!limit) return "";
  return fmt::format(" (ulimit -v allows {} of address space)",
                     HumanBytes(static_cast<double>(*limit)));
}

}  // namespace syntra
