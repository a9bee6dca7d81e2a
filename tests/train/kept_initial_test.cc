// SPDX-License-Identifier: Apache-2.0
// checkpoint.initial_kept_in, where several processes come at once and the run that they start from
// goes on.
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "tests/base/scratch.h"
#include "tests/checkpoint/sample.h"
#include "train/initial.h"

namespace syntra {
namespace {

TEST(KeptInitial, IsTheSameForAll) {
  const Path root = ScratchInMemory("kept-initial"), checkpoints = root / "base/checkpoints";
  Sample(1).Save(checkpoints);
  std::atomic<bool> ended = false;
  std::thread run([&] {
    for (int64_t step = 2; !ended; ++step) Sample(step).Save(checkpoints, {.keep = 2});
  });
  for (int round = 0; round < 5; ++round) {
    Config config;
    config.mutable_checkpoint()->set_initial((root / "base").string());
    config.mutable_checkpoint()->set_initial_kept_in((root / "start").string());
    std::vector<Path> taken(4);
    std::vector<std::thread> processes;
    for (Path& path : taken) {
      processes.emplace_back([&] { path = KeepInitial(InitialOf(config), config).value().path; });
    }
    for (std::thread& process : processes) process.join();
    EXPECT_EQ(taken.front().parent_path(), root / "start");
    EXPECT_EQ(std::set(taken.begin(), taken.end()).size(), 1u);
    RemoveAll(root / "start");
  }
  ended = true;
  run.join();
}

}  // namespace
}  // namespace syntra
