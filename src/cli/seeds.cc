// SPDX-License-Identifier: Apache-2.0
#include "cli/seeds.h"

#include <fmt/format.h>

#include "base/error.h"
#include "train/run_directory.h"

namespace syntra {

Config OfSeed(Config config, int index, int seeds) {
  if (seeds == 1) return config;
  TrainConfig& train = *config.mutable_train();
  train.set_seed(train.seed() + index);
  train.set_directory((Path(train.directory()) / fmt::format("seed-{}", train.seed())).string());
  return config;
}

void RequireNoRun(const Path& directory) {
  if (!RunDirectory{directory}.is_run()) return;
  Fail(ExitCode::kConfig,
       "train.directory {} is that of a single run, which several would mix with; set another",
       directory.string());
}

}  // namespace syntra
