// SPDX-License-Identifier: Apache-2.0
#include "base/crash_guard.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <cstdlib>
#include <thread>

#include "base/file.h"
#include "base/terminal.h"
#include "tests/base/child_process.h"
#include "tests/base/scratch.h"

namespace syntra {
namespace {

// Volatile, since a compiler may leave out a write through a pointer that it knows to be null.
int* volatile nowhere = nullptr;

void Crash() { *nowhere = 1; }

Outcome RunGuarded(const std::function<void()>& body) {
  return RunInChild([&] {
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    InstallCrashHandlers("1.2.3");
    body();
  });
}

class Crashes : public testing::Test {
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the sanitizer handles crashes itself";
#endif
  }
};

TEST_F(Crashes, InsideAGuardIsAnErrorOfWhatIsRead) {
  const Outcome ended = RunGuarded([] {
    const CrashGuard guard(ExitCode::kData, "SentencePiece model", "/x/a\x1b.model");
    Crash();
  });
  EXPECT_EQ(ended.code, 3);
  EXPECT_EQ(ended.err,
            "error: the SentencePiece model /x/a?.model is damaged: reading it crashed; restore "
            "it\n");
}

TEST_F(Crashes, TheInnermostGuardOfTheThreadCounts) {
  const CrashGuard other(ExitCode::kData, "other", "thread");
  const Outcome ended = RunGuarded([] {
    const CrashGuard outer(ExitCode::kData, "outer", "file");
    { const CrashGuard done(ExitCode::kData, "done", "file"); }
    std::thread([] {
      const CrashGuard guard(ExitCode::kCheckpoint, "shard", "/x/y.h5");
      raise(SIGFPE);
    }).join();
  });
  EXPECT_EQ(ended.code, 5);
  EXPECT_TRUE(ended.Says("the shard /x/y.h5 is damaged")) << ended.err;
}

TEST_F(Crashes, WithoutAGuardIsABugThatTheSignalEnds) {
  const Outcome ended = RunGuarded(Crash);
  EXPECT_EQ(ended.code, 1000 + SIGSEGV);
  EXPECT_TRUE(ended.Says("error: crash (SIGSEGV) of syntra 1.2.3, a bug in this program"))
      << ended.err;
}

// SentencePiece's protobuf does both, in the middle of a model and in its destructors.
TEST_F(Crashes, ALibraryThatWasRefusedMemoryProvesNoDamage) {
  for (const auto& end : {std::function<void()>(std::abort), std::function<void()>(Crash)}) {
    const auto end_after = [&](int error) {
      return RunGuarded([&] {
        const CrashGuard guard(ExitCode::kData, "SentencePiece model", "/x/a.model");
        errno = error;
        end();
      });
    };
    const Outcome refused = end_after(ENOMEM), damaged = end_after(0);
    EXPECT_EQ(refused.code, 4) << refused.err;
    EXPECT_TRUE(refused.Says("error: out of memory")) << refused.err;
    EXPECT_EQ(damaged.code, 3) << damaged.err;
  }
}

TEST_F(Crashes, OfALibraryThatWasRefusedMemoryAreAShortage) {
  const auto crash_after = [](int error) {
    return RunGuarded([error] {
      const ShortageGuard guard("HDF5");
      errno = error;
      Crash();
    });
  };
  const Outcome refused = crash_after(ENOMEM), other = crash_after(0);
  EXPECT_EQ(refused.code, 4);
  EXPECT_TRUE(refused.Says("error: out of memory in HDF5")) << refused.err;
  EXPECT_EQ(other.code, 1000 + SIGSEGV);
  EXPECT_TRUE(other.Says("a bug in this program")) << other.err;
}

TEST_F(Crashes, TheMessageBeginsALineOfItsOwn) {
  const Outcome ended = RunGuarded([] {
    StderrLine().Show("ETA 3h12m");
    const CrashGuard guard(ExitCode::kData, "SentencePiece model", "m");
    Crash();
  });
  EXPECT_EQ(ended.code, 3);
  EXPECT_TRUE(ended.Says("ETA 3h12m\nerror: the SentencePiece model m")) << ended.err;
}

TEST_F(Crashes, AMappedFileThatIsCutShortIsNamed) {
  const Path path = ScratchDirectory("crash_guard") / "cut";
  ReplaceFileDurably(path, std::string(100000, 'x'));
  const Outcome ended = RunGuarded([&] {
    const MappedFile none("/proc/self/cmdline"), map(path, ExitCode::kData);
    if (truncate(path.c_str(), 10) != 0) return;
    // Several threads meet it at once; one speaks.
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        volatile std::byte last = map.bytes().back();
        static_cast<void>(last);
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  EXPECT_EQ(ended.code, 3);
  EXPECT_EQ(ended.err, "error: " + path.string() +
                           " was cut short while it was in use: from 100000 bytes to 10\n");
  std::filesystem::remove(path);
}

// As a library that does not look at what malloc returns.
TEST_F(Crashes, WithoutMemoryIsAShortageNotABug) {
  const Outcome ended = RunGuarded([] {
    const rlimit limit{rlim_t{64} << 20, rlim_t{64} << 20};
    setrlimit(RLIMIT_AS, &limit);
    Crash();
  });
  EXPECT_EQ(ended.code, 4);
  EXPECT_EQ(ended.err, "error: out of memory: ulimit -v allows 64 MiB of address space\n");
}

TEST_F(Crashes, ExceptionsThatNothingCatchesHaveTheirCode) {
  const Outcome memory = RunGuarded([] { std::thread([] { throw std::bad_alloc(); }).join(); });
  EXPECT_EQ(memory.code, 4);
  EXPECT_EQ(memory.err, "error: out of memory\n");
  const Outcome data = RunGuarded([]() noexcept { Fail(ExitCode::kData, "no data"); });
  EXPECT_EQ(data.code, 3);
  EXPECT_EQ(data.err, "error: no data\n");
  const Outcome bug =
      RunGuarded([] { std::thread([] { throw std::logic_error("wrong"); }).join(); });
  EXPECT_EQ(bug.code, 1000 + SIGABRT);
  EXPECT_TRUE(bug.Says("error: wrong (a bug in this program)")) << bug.err;
}

TEST_F(Crashes, ALibraryThatEndsTheProcessHasACode) {
  const Outcome ended = RunGuarded([] { std::exit(1); });
  EXPECT_EQ(ended.code, 4);
  EXPECT_TRUE(ended.Says("a library could not go on")) << ended.err;
  // As noexcept code does with an exception that passes through.
  const Outcome thrown = RunGuarded([] {
    struct Noexcept {
      ~Noexcept() { std::terminate(); }
    };
    const Noexcept frame;
    throw 1;
  });
  EXPECT_EQ(thrown.code, 4);
  EXPECT_TRUE(thrown.Says("a library could not go on")) << thrown.err;
  const Outcome model = RunGuarded([] {
    const CrashGuard guard(ExitCode::kData, "SentencePiece model", "m");
    std::exit(-1);
  });
  EXPECT_EQ(model.code, 3);
  EXPECT_EQ(RunGuarded([] { std::exit(6); }).code, 6);
}

TEST_F(Crashes, TheLimitOnFileSizesIsAnError) {
  const Path path = ScratchDirectory("crash_guard") / "limited";
  const Outcome ended = RunGuarded([&]() noexcept {
    const rlimit limit{1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    ReplaceFileDurably(path, std::string(2000, 'x'));
  });
  EXPECT_EQ(ended.code, 4);
  EXPECT_TRUE(ended.Says("File too large: the limit on file sizes (ulimit -f)")) << ended.err;
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace syntra
