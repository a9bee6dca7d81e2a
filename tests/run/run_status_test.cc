// SPDX-License-Identifier: Apache-2.0
#include "run/run_status.h"

#include "base/error.h"
#include "tests/base/captured_log.h"
#include "tests/base/error_of.h"
#include "tests/base/scratch.h"

namespace syntra {
namespace {

TEST(RunStatus, RefusesTheFourthStartAtTheSameStep) {
  const Path directory = ScratchDirectory("status");
  for (int start = 0; start < 3; ++start) RunStatus(directory).Start(500);
  for (int repeat = 0; repeat < 2; ++repeat) {
    const std::string error =
        ErrorOf([&] { RunStatus(directory).Start(500); }, ExitCode::kDiverged);
    EXPECT_NE(error.find("do not requeue"), std::string::npos);
  }
  // Another step is progress, or a rollback that deserves its own chances.
  EXPECT_NO_THROW(RunStatus(directory).Start(400));
}

TEST(RunStatus, ProgressAndOrderlyEndsReset) {
  const Path directory = ScratchDirectory("status-progress");
  for (int start = 0; start < 8; ++start) {
    RunStatus status(directory);
    status.Start(500);
    if (start % 3 == 1) status.Progress(501);
    if (start % 3 == 2) status.Stop(500, Ending::kStopped);
  }
  RunStatus(directory).Stop(700, Ending::kDone);
  EXPECT_NE(ReadWholeFile(directory / "STATUS").find("\"state\":\"done\",\"step\":700"),
            std::string::npos);
}

TEST(RunStatus, NeitherTheFirstSaveNorTheEndOfTimeIsProgress) {
  for (const bool saves : {true, false}) {
    const Path directory = ScratchDirectory("status-stuck");
    for (int start = 0; start < 3; ++start) {
      RunStatus status(directory);
      status.Start(500);
      if (saves) {
        status.Progress(500);
      } else {
        status.Stop(500, Ending::kOutOfTime);
      }
    }
    EXPECT_THROW(RunStatus(directory).Start(500), Error) << saves;
  }
  const Path directory = ScratchDirectory("status-slow");
  for (int start = 0; start < 9; ++start) {
    RunStatus status(directory);
    status.Start(start);
    status.Stop(start + 1, Ending::kOutOfTime);
  }
}

TEST(RunStatus, DoneIsSaidOfOneStep) {
  const RunStatus none(ScratchDirectory("status-none"));
  EXPECT_FALSE(none.IsDone(0));
  RunStatus status(ScratchDirectory("status-done"));
  status.Stop(700, Ending::kDone);
  EXPECT_TRUE(status.IsDone(700));
  EXPECT_FALSE(status.IsDone(600));
  status.Stop(700, Ending::kStopped);
  EXPECT_FALSE(status.IsDone(700));
}

TEST(RunStatus, UnreadableFileStartsAnew) {
  const Path directory = ScratchDirectory("status-bad");
  for (const char* content : {"", "{", "[]", "{\"step\":\"x\"}", "\xFF\xFE"}) {
    ReplaceFileDurably(directory / "STATUS", content);
    EXPECT_NO_THROW(RunStatus(directory).Start(1)) << content;
  }
}

// A link stands for whatever cannot be read: a sick disk, a file handle that is stale.
TEST(RunStatus, AFileThatCannotBeReadOnlyFailsTheStart) {
  const Path directory = ScratchDirectory("status-link");
  const Path status = directory / "STATUS";
  const auto make_link = [&] {
    std::filesystem::remove(status);
    std::filesystem::create_symlink("elsewhere", status);
  };
  make_link();
  EXPECT_THROW(RunStatus(directory).Start(500), Error);
  const CapturedLog captured;
  RunStatus(directory).Progress(501);
  EXPECT_EQ(captured.Warnings().size(), 1u);
  EXPECT_NE(ReadWholeFile(status).find("\"state\":\"running\",\"step\":501"), std::string::npos);
  make_link();
  RunStatus(directory).Stop(502, Ending::kDone);
  EXPECT_EQ(captured.Warnings().size(), 2u);
  EXPECT_TRUE(RunStatus(directory).IsDone(502));
}

TEST(RunStatus, LostDirectoryOnlyFailsTheStart) {
  RunStatus status("/nonexistent");
  EXPECT_THROW(status.Start(0), Error);
  EXPECT_NO_THROW(status.Progress(1));
  EXPECT_NO_THROW(status.Stop(1, Ending::kDone));
}

}  // namespace
}  // namespace syntra
