// SPDX-License-Identifier: Apache-2.0
// A run that an older version began goes on: its configuration, its checkpoint and its data are
// read as they were meant. tests/e2e/old_run holds what version 0.1.0+g68877ff10e3d wrote: a
// Synthesizer after four of eight steps, and the metrics of all eight.
#include <cstdlib>

#include "tests/e2e/tiny_run.h"

namespace syntra {
namespace {

const Path kOldRun = SYNTRA_SOURCE_DIR "/tests/e2e/old_run";

class OldRun : public TinyRun {
 protected:
  Arguments Settings() const {
    return {"model.width=16",         "model.feed_forward.width=16",
            "model.encoder_layers=1", "model.decoder_layers=1",
            "train.steps=8",          "checkpoint.every=4"};
  }
};

TEST_F(OldRun, GoesOn) {
  // Writes the files again: with SYNTRA_TEST_PROGRAM, a program of the older version.
  if (const char* folder = std::getenv("SYNTRA_WRITE_OLD_RUN")) {
    Train("old", Settings());
    std::filesystem::remove_all(CheckpointPath("old", 8));
    for (const char* kept : {"checkpoints", "metrics.jsonl"}) {
      std::filesystem::copy(Directory("old") / kept, Path(folder) / kept,
                            std::filesystem::copy_options::recursive);
    }
    GTEST_SKIP() << "wrote " << folder;
  }
  std::filesystem::copy(kOldRun, Directory("old"), std::filesystem::copy_options::recursive);
  std::filesystem::copy(kOldRun, Directory("expected"), std::filesystem::copy_options::recursive);
  ASSERT_EQ(NewestStep("old"), 4);
  Train("old", Settings());
  EXPECT_EQ(NewestStep("old"), 8);
  ExpectSameCurve("old", "expected", 8, 1e-5);
}

}  // namespace
}  // namespace syntra
