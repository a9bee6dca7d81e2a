// SPDX-License-Identifier: Apache-2.0
// syntra inspect checkpoint|checkpoints
#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/error.h"
#include "base/failure.h"
#include "base/json.h"
#include "base/text.h"
#include "checkpoint/read.h"
#include "checkpoint/recover.h"
#include "cli/checkpoint_options.h"
#include "cli/inspect.h"
#include "train/run_directory.h"
#include "train/snapshot.h"

namespace syntra {
namespace {

struct CheckpointState {
  Path path;
  int64_t step = -1;  // -1 if it cannot be used
  double bytes = 0;
  std::string problem;  // "" if every file matches its digest
};

// Every checkpoint of a run directory, newest first, then the best ones of its tasks; or those of a
// directory of checkpoints, or a single one. Their contents are not read. Throws as OpenCheckpoint
// if there is none.
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

// Reads all of a checkpoint.
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

struct PlaceOptions {
  std::string directory;
  bool json = false;
};

// Adds --checkpoint, which is also an argument of the name `argument`, and --json.
std::shared_ptr<PlaceOptions> AddPlaceOptions(CLI::App& app, const std::string& argument,
                                              const std::string& description) {
  const auto options = std::make_shared<PlaceOptions>();
  app.add_option("--checkpoint," + argument, options->directory, description)
      ->required()
      ->type_name("DIR");
  app.add_flag("--json", options->json, "Print JSON");
  return options;
}

void PrintState(const CheckpointState& state, size_t width) {
  fmt::print("{:{}}  {:>9}  {}\n", Printable(state.path.string()), width, HumanBytes(state.bytes),
             state.problem.empty() ? fmt::format("step {}, intact", WithThousands(state.step))
                                   : Printable(state.problem));
  std::fflush(stdout);  // the next one may take long to read
}

Json JsonOf(const CheckpointState& state) {
  const bool intact = state.problem.empty();
  return {{"path", state.path.string()},
          {"step", intact ? Json(state.step) : Json()},
          {"bytes", state.bytes},
          {"intact", intact},
          {"problem", intact ? Json() : Json(state.problem)}};
}

}  // namespace

Action SetUpInspectCheckpoint(CLI::App& app) {
  const auto options = AddPlaceOptions(
      app, "checkpoint",
      "Checkpoint, or a directory of checkpoints, of which the newest valid one is used");
  return [options] {
    const Checkpoint checkpoint = OpenCheckpoint(options->directory);
    if (options->json) {
      Json tensors = Json::array();
      for (const auto& [name, entry] : checkpoint.tensors()) {
        const auto dims = entry.type.shape.dims();
        tensors.push_back({{"name", name},
                           {"shape", std::vector<int64_t>(dims.begin(), dims.end())},
                           {"dtype", NameOf(entry.type.dtype)}});
      }
      Json files = Json::object();
      for (const auto& [name, file] : checkpoint.files()) files[name] = file.bytes;
      fmt::print("{}\n", JsonText({{"path", checkpoint.path().string()},
                                   {"step", checkpoint.info().step},
                                   {"run_id", checkpoint.info().run_id},
                                   {"tokenizer_digest", TokenizerIdentityOf(checkpoint)},
                                   {"files", files},
                                   {"tensors", tensors}}));
      return ExitCode::kDone;
    }
    fmt::print("{}: step {}, run {}\n", Printable(checkpoint.path().string()),
               checkpoint.info().step, Printable(checkpoint.info().run_id));
    const bool has_tokenizer = checkpoint.HasFile(kTokenizerFile);
    fmt::print("tokenizer XXH3-128 {}{}\n", Printable(TokenizerIdentityOf(checkpoint)),
               has_tokenizer ? fmt::format(", in {}", kTokenizerFile) : "");
    double bytes = 0;
    for (const auto& [name, entry] : checkpoint.tensors()) {
      fmt::print("  {:60} {}\n", Printable(name), ToString(entry.type));
      bytes += static_cast<double>(entry.type.bytes());
    }
    fmt::print("{} tensors, {}; every file matches its digest\n", checkpoint.tensors().size(),
               HumanBytes(bytes));
    return ExitCode::kDone;
  };
}

// Ends as if the first damaged checkpoint had been needed.
Action SetUpInspectCheckpoints(CLI::App& app) {
  const auto options =
      AddPlaceOptions(app, "directory", "Run directory, directory of checkpoints, or checkpoint");
  return [options] {
    const std::vector<Path> paths = AllCheckpointsAt(options->directory);
    size_t width = 0, damaged = 0;
    for (const Path& path : paths) width = std::max(width, path.string().size());
    Json list = Json::array();
    for (const Path& path : paths) {
      const CheckpointState state = StateOfCheckpoint(path);
      if (!state.problem.empty()) ++damaged;
      if (!options->json) PrintState(state, width);
      list.push_back(JsonOf(state));
    }
    if (options->json) {
      fmt::print("{}\n", JsonText({{"checkpoints", list}}));
    } else {
      fmt::print("{} of {} intact\n", paths.size() - damaged,
                 Counted(std::ssize(paths), "checkpoint"));
    }
    return damaged == 0 ? ExitCode::kDone : ExitCode::kCheckpoint;
  };
}

}  // namespace syntra
