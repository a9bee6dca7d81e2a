// SPDX-License-Identifier: Apache-2.0
#include "run/signals.h"

#include <csignal>
#include <cstdlib>

#include "tests/base/captured_log.h"
#include "tests/base/scratch.h"
#include "tests/base/waiting.h"
#include "tests/run/child.h"

namespace syntra {
namespace {

// A loop that leaves with 75 when asked to stop and counts the saves it was asked for.
int Loop(const std::function<void()>& ready) {
  InstallSignalHandlers();
  ready();
  for (int saves = 0, i = 0; i < 1000; ++i, SleepSeconds(0.01)) {
    switch (PollSignals()) {
      case StopRequest::kNone:
        break;
      case StopRequest::kSave:
        ++saves;
        break;
      case StopRequest::kSaveAndStop:
        return 75 + saves;
    }
  }
  return 1;
}

// A loop that never looks at its flags.
int Deaf(const std::function<void()>& ready) {
  InstallSignalHandlers();
  ready();
  for (int i = 0; i < 130; ++i) SleepSeconds(0.05);
  return PollSignals() == StopRequest::kSaveAndStop ? 75 : 1;
}

TEST(Signals, StopRequests) {
  for (const int signal : {SIGUSR1, SIGTERM, SIGINT, SIGHUP, SIGXCPU}) {
    Child child([](const auto& ready) {
      std::signal(SIGHUP, SIG_DFL);  // the tests may run under nohup
      return Loop(ready);
    });
    child.Signal(signal);
    EXPECT_EQ(child.Wait(), 75) << signal;
  }
}

TEST(Signals, SaveAndGoOn) {
  Child child(Loop);
  child.Deliver(SIGUSR2);
  SleepSeconds(0.2);
  EXPECT_TRUE(child.running());
  child.Signal(SIGUSR1);
  EXPECT_EQ(child.Wait(), 76);
}

TEST(Signals, InterruptsThatFollowWithinSecondsAreImmediate) {
  for (const int first : {SIGTERM, SIGINT}) {
    Child child(Deaf);
    child.Deliver(first);
    EXPECT_TRUE(child.running());
    child.Signal(SIGINT);
    EXPECT_EQ(child.Wait(), 128 + SIGINT);
  }
}

TEST(Signals, UserSignalIsNoFirstRequestToInsistOn) {
  Child child(Deaf);
  child.Deliver(SIGUSR1);
  child.Deliver(SIGINT);
  SleepSeconds(0.1);
  EXPECT_TRUE(child.running());
}

// A closed terminal and its shell both send it.
TEST(Signals, HangupsNeverInsist) {
  Child child(Deaf);
  for (int i = 0; i < 3; ++i) {
    child.Deliver(SIGHUP);
  }
  SleepSeconds(0.1);
  EXPECT_TRUE(child.running());
}

// As nohup leaves it.
TEST(Signals, AnIgnoredHangupStaysIgnored) {
  Child child([](const auto& ready) {
    signal(SIGHUP, SIG_IGN);
    return Loop(ready);
  });
  child.Signal(SIGHUP);
  SleepSeconds(0.1);
  EXPECT_TRUE(child.running());
}

// Schedulers repeat TERM, at once or when their grace ends.
TEST(Signals, RepeatedTermsAreTolerated) {
  Child child(Deaf);
  for (int i = 0; i < 3; ++i) child.Deliver(SIGTERM);
  EXPECT_EQ(child.Wait(), 75);
}

TEST(Signals, RequestFilesAreTakenOnce) {
  const Path directory = ScratchDirectory("request-files");
  EXPECT_EQ(PollRequestFiles(directory), StopRequest::kNone);
  ReplaceFileDurably(directory / "SAVE", "");
  EXPECT_EQ(PollRequestFiles(directory), StopRequest::kSave);
  EXPECT_EQ(PollRequestFiles(directory), StopRequest::kNone);
  ReplaceFileDurably(directory / "SAVE", "");
  ReplaceFileDurably(directory / "STOP", "");
  EXPECT_EQ(PollRequestFiles(directory), StopRequest::kSaveAndStop);
  EXPECT_EQ(PollRequestFiles(directory), StopRequest::kNone);
}

// A directory cannot be removed as a file is. What lies behind a link to itself cannot be known.
TEST(Signals, RequestFilesThatStayAreObeyedAndNamedOnce) {
  const Path directory = ScratchDirectory("request-files-that-stay"), loop = directory / "loop";
  CreateDirectories(directory / "SAVE");
  std::filesystem::create_symlink("loop", loop);
  const CapturedLog captured;
  for (int look = 0; look < 3; ++look) {
    EXPECT_EQ(PollRequestFiles(directory), look == 0 ? StopRequest::kSave : StopRequest::kNone);
    EXPECT_EQ(PollRequestFiles(loop), StopRequest::kNone);
  }
  ASSERT_EQ(captured.Warnings().size(), 1u);
  EXPECT_NE(captured.Warnings()[0].find((directory / "SAVE").string()), std::string::npos);
}

TEST(Signals, RankDiesWithItsLauncher) {
  for (const bool under_mpirun : {true, false}) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    Child launcher([&](const std::function<void()>& ready) {
      if (under_mpirun) {
        setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
      } else {
        unsetenv("OMPI_COMM_WORLD_SIZE");
      }
      const pid_t parent = getpid();
      if (fork() == 0) {
        DieWithParent();
        ready();
        WaitUntil([&] { return getppid() != parent; });
        // Reached only by a rank that outlived its launcher.
        return write(ends[1], "alive", 5) == 5 ? 0 : 1;
      }
      SleepSeconds(kHangSeconds);
      return 0;
    });
    launcher.Signal(SIGKILL);
    launcher.Wait();
    close(ends[1]);
    char text[8];
    EXPECT_EQ(read(ends[0], text, sizeof text), under_mpirun ? 0 : 5);
    close(ends[0]);
  }
}

}  // namespace
}  // namespace syntra
