// SPDX-License-Identifier: Apache-2.0
#include "train/best_checkpoints.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "checkpoint/verify.h"
#include "tests/base/child_process.h"
#include "tests/base/scratch.h"
#include "tests/base/small_disk.h"
#include "tests/checkpoint/sample.h"

namespace syntra {
namespace {

struct stat StatusOf(const Path& path) {
  struct stat status = {};
  EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
  return status;
}

// No hard link leads to another file system.
TEST(BestCheckpoints, AreCopiedWhereNothingCanBeLinked) {
  const Path checkpoints = ScratchInMemory("best"), root = ScratchDirectory("best");
  if (StatusOf(checkpoints).st_dev == StatusOf(root).st_dev) {
    GTEST_SKIP() << "there is one file system";
  }
  for (const int64_t step : {10, 20}) Sample(step).Save(checkpoints, {.keep = 3});
  BestCheckpoints best(root, checkpoints);
  best.Keep("toy", 10);
  const Path kept = root / "toy" / StepName(10), manifest = kept / kManifestName;
  VerifyDirectory(kept);
  // A sound copy stays, a damaged one is replaced.
  const ino_t first = StatusOf(manifest).st_ino;
  best.Keep("toy", 10);
  EXPECT_EQ(StatusOf(manifest).st_ino, first);
  std::filesystem::resize_file(kept / "tensors.h5", 100);
  EXPECT_THROW(VerifyDirectory(kept), Error);
  best.Keep("toy", 10);
  VerifyDirectory(kept);
  best.Keep("toy", 20);
  EXPECT_EQ(ListCheckpoints(root / "toy").size(), 1u);
  VerifyDirectory(root / "toy" / StepName(20));
}

// What a full disk allows of a copy does not stay and fill it.
TEST(BestCheckpoints, NothingStaysOfACopyThatDoesNotFit) {
  const Path checkpoints = ScratchInMemory("best-full"), root = ScratchDirectory("best-full");
  Sample(10).Save(checkpoints);
  const Outcome ended = RunInChild([&] {
    if (!MayMount() || !MountSmallDisk(root, "size=8k")) _exit(77);
    try {
      BestCheckpoints(root, checkpoints).Keep("toy", 10);
    } catch (const Error& error) {
      std::fprintf(stderr, "%s\n", error.what());
      _exit(DirectoryNames(root / "toy").empty() ? static_cast<int>(error.code()) : 1);
    }
  });
  if (ended.code == 77) GTEST_SKIP() << "this process may not mount";
  EXPECT_EQ(ended.code, static_cast<int>(ExitCode::kResources)) << ended.err;
  EXPECT_TRUE(ended.Says("No space left on device")) << ended.err;
}

}  // namespace
}  // namespace syntra
