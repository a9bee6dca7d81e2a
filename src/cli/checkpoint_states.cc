// SPDX-License-Identifier: Apache-2.0
#include "cli/checkpoint_states.h"

#include "base/error.h"
#include "base/failure.h"
#include "checkpoint/read.h"
#include "checkpoint/recover.h"
#include "cli/checkpoint_options.h"
#include "train/run_directory.h"

namespace syntra {

std::vector<Path> AllCheckpointsAt(const Path& place) {
  std::vector<Path> paths = CheckpointsAt(place);
  const Path best = RunDirectory{place}.best();
  if (IsDirectory(best)) {
    for (const Path& task : ListDirectory(best)) {
      const std::vector<Path> of_task = CheckpointsAt(task);
      paths.insert(paths.end(), of_task.begin(), of_task.end());
    }
  }
  if (paths.empty()) OpenCheckpoint(place);  // throws, saying what there is instead
  return paths;
}

CheckpointState StateOfCheckpoint(const Path& path) {
  CheckpointState state{.path = path, .bytes = BytesBelow(path)};
  try {
    state.step = Checkpoint(path).info().step;
  } catch (const OutOfMemory&) {
    throw;  // says nothing about the checkpoint
  } catch (const Error& error) {
    const std::string_view text = error.what();
    state.problem = text.substr(0, text.find('\n'));  // without what was done meanwhile
  }
  return state;
}

}  // namespace syntra
