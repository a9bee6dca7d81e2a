// SPDX-License-Identifier: Apache-2.0
#include "base/output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <new>
#include <system_error>

#include "base/failure.h"
#include "tests/base/child_process.h"

namespace syntra {
namespace {

TEST(Output, ErrorsAreMarkedOnceAndCommandNoTerminal) {
  const Outcome ended = RunInChild([] {
    PrintError("no file \x1b[31m\xc2\x9bx\xff\nwhile \xc3\xa4", "rank 1: ");
    PrintError("error: a\nerror: b\n2 errors");
  });
  EXPECT_EQ(ended.err,
            "rank 1: error: no file \\x1b[31m\\xc2\\x9bx\\xff\nwhile \xc3\xa4\n"
            "error: a\nerror: b\n2 errors\n");
}

TEST(Output, AnErrorThatCannotBePrintedIsLost) {
  const Outcome ended = RunInChild([] {
    dup2(open("/dev/full", O_WRONLY), STDERR_FILENO);
    PrintError("x");
    close(STDERR_FILENO);
    PrintError("x");
    _exit(0);
  });
  EXPECT_EQ(ended.code, 0);
}

TEST(Output, ClosedDescriptorsAreOpened) {
  const Outcome ended = RunInChild([] {
    for (const int descriptor : {0, 1}) close(descriptor);
    OpenStandardDescriptors();
    const int next = open("/dev/null", O_RDONLY);
    _exit(next > 2 && WriteAll(1, "lost") ? 0 : 1);
  });
  EXPECT_EQ(ended.code, 0);
}

template <typename Exception>
Failure FailureOf(const Exception& exception) {
  try {
    throw exception;
  } catch (...) {
    return CurrentFailure();
  }
}

TEST(Failure, WhatTheSystemRefusesIsResources) {
  EXPECT_EQ(FailureOf(std::bad_alloc()).code, ExitCode::kResources);
  EXPECT_EQ(FailureOf(std::bad_alloc()).message, "out of memory");
  const Failure thread =
      FailureOf(std::system_error(EAGAIN, std::generic_category(), "thread constructor"));
  EXPECT_EQ(thread.code, ExitCode::kResources);
  EXPECT_TRUE(thread.message.starts_with("cannot start a thread: Resource temporarily"))
      << thread.message;
  const Failure file = FailureOf(std::filesystem::filesystem_error(
      "cannot list", "/x", std::make_error_code(std::errc::permission_denied)));
  EXPECT_EQ(file.code, ExitCode::kResources);
}

TEST(Failure, ErrorsKeepTheirCodeAndTheRestAreBugs) {
  EXPECT_EQ(FailureOf(Error(ExitCode::kDiverged, "x")).code, ExitCode::kDiverged);
  const Failure bug = FailureOf(std::out_of_range("vector"));
  EXPECT_EQ(bug.code, ExitCode::kInternal);
  EXPECT_EQ(bug.message, "vector (a bug in this program)");
}

TEST(Failure, TheLimitOnMemoryIsNamed) {
  const Outcome ended = RunInChild([] {
    const rlimit limit{rlim_t{1} << 30, RLIM_INFINITY};
    setrlimit(RLIMIT_AS, &limit);
    PrintNote(MemoryLimitNote());
  });
  EXPECT_EQ(ended.err, " (ulimit -v allows 1.0 GiB of address space)\n");
}

}  // namespace
}  // namespace syntra
