// SPDX-License-Identifier: Apache-2.0
#include "run/run_lock.h"

#include <sys/syscall.h>

#include <optional>
#include <thread>

#include "base/error.h"
#include "tests/base/error_of.h"
#include "tests/base/refused_calls.h"
#include "tests/base/scratch.h"
#include "tests/base/waiting.h"
#include "tests/run/child.h"

namespace syntra {
namespace {

int HoldLock(const Path& directory, const std::function<void()>& ready) {
  const RunLock lock(directory);
  ready();
  SleepSeconds(60);
  return 0;
}

TEST(RunLock, SecondRunIsToldWhoHoldsIt) {
  const Path directory = ScratchDirectory("run lock \xC3\xA9");
  Child holder([&](const auto& ready) { return HoldLock(directory, ready); });
  ASSERT_TRUE(holder.ready());
  const std::string text = ErrorOf([&] { const RunLock lock(directory); }, ExitCode::kLocked);
  EXPECT_NE(text.find(fmt::format("process {} on ", holder.pid())), std::string::npos) << text;
  EXPECT_NE(text.find(" since 2"), std::string::npos) << text;
  EXPECT_THROW(RunLock::RequireFree(directory), Error);
  // Killed, not closed: the kernel releases the lock.
  holder.Signal(SIGKILL);
  holder.Wait();
  RunLock::RequireFree(directory);
  const RunLock lock(directory);
}

TEST(RunLock, CleanReleaseAllowsTheNextRun) {
  const Path directory = ScratchDirectory("run-lock-release");
  for (int run = 0; run < 3; ++run) {
    const RunLock lock(directory);
    EXPECT_NE(ReadWholeFile(directory / "LOCK").find("\"host\""), std::string::npos);
  }
  EXPECT_EQ(ReadWholeFile(directory / "LOCK"), "");
}

TEST(RunLock, OneOfManyWins) {
  const Path directory = ScratchDirectory("run-lock-race");
  std::vector<std::unique_ptr<Child>> children;
  for (int i = 0; i < 10; ++i) {
    children.push_back(std::make_unique<Child>([&](const auto& ready) {
      std::optional<RunLock> lock;
      try {
        lock.emplace(directory);
      } catch (const Error& error) {
        return static_cast<int>(error.code());
      }
      ready();
      SleepSeconds(60);
      return 0;
    }));
  }
  int holders = 0;
  for (const auto& child : children) {
    if (child->ready()) {
      ++holders;
    } else {
      EXPECT_EQ(child->Wait(), static_cast<int>(ExitCode::kLocked));
    }
  }
  EXPECT_EQ(holders, 1);
}

// A lock file with unreadable content still counts as held.
TEST(RunLock, AHolderThatCannotBeReadIsAHolder) {
  const Path directory = ScratchDirectory("run-lock-long");
  Child holder([&](const auto& ready) { return HoldLock(directory, ready); });
  std::filesystem::resize_file(directory / "LOCK", 100000);
  const std::string error = ErrorOf([&] { const RunLock lock(directory); }, ExitCode::kLocked);
  EXPECT_NE(error.find("is in use by another process"), std::string::npos);
}

// The code of what CheckHeld throws; 0: nothing.
int CodeOfCheck(const RunLock& lock) {
  try {
    lock.CheckHeld();
  } catch (const Error& error) {
    return static_cast<int>(error.code());
  }
  return 0;
}

TEST(RunLock, ARemovedLockIsNoticed) {
  const Path directory = ScratchDirectory("run-lock-removed");
  const RunLock lock(directory);
  EXPECT_EQ(CodeOfCheck(lock), 0);
  std::filesystem::remove(directory / "LOCK");
  EXPECT_EQ(CodeOfCheck(lock), static_cast<int>(ExitCode::kLocked));
  // Another run takes it.
  const RunLock second(directory);
  EXPECT_EQ(CodeOfCheck(lock), static_cast<int>(ExitCode::kLocked));
  EXPECT_EQ(CodeOfCheck(second), 0);
}

TEST(RunLock, AMovedDirectoryIsNoticed) {
  const Path directory = ScratchDirectory("run-lock-moved");
  const Path elsewhere = ScratchDirectory("run-lock-elsewhere");
  const RunLock lock(directory);
  std::filesystem::rename(directory, elsewhere);
  EXPECT_EQ(CodeOfCheck(lock), static_cast<int>(ExitCode::kResources));
  // Another directory took its place.
  std::filesystem::create_directory(directory);
  EXPECT_EQ(CodeOfCheck(lock), static_cast<int>(ExitCode::kResources));
}

// As long as the file server is away, nobody can tell.
TEST(RunLock, WhatCannotBeLookedAtIsNotTakenForRemoved) {
  const Path directory = ScratchDirectory("run-lock-away");
  Child child([&](const auto&) {
    const RunLock lock(directory);
    int code = -1;
    std::thread([&] {
      if (RefuseCalls({SYS_fstat, SYS_newfstatat})) code = CodeOfCheck(lock);
    }).join();
    return code;
  });
  EXPECT_EQ(child.Wait(), 0);
}

TEST(RunLock, DirectoryMissing) {
  ErrorOf([&] { const RunLock lock("/nonexistent"); }, ExitCode::kResources);
}

}  // namespace
}  // namespace syntra
