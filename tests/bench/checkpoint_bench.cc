// SPDX-License-Identifier: Apache-2.0
// One operation on a state of many equal tensors: a checkpoint saved or loaded, and what bounds
// that. Prints a line of JSON once it is ready, and one with the seconds of the operation for each
// line of standard input; at the end the peak memory. tests/bench/checkpoint runs it.
//
//   checkpoint_bench --operation save --directory /dev/shm/bench
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstring>
#include <map>

#include "base/file.h"
#include "checkpoint/recover.h"
#include "checkpoint/save.h"
#include "core/random_fill.h"
#include "core/thread.h"
#include "tests/bench/timed_lines.h"
#include "train/state_copy.h"

namespace syntra {
namespace {

struct Options {
  std::string operation;
  Path directory;
  int64_t tensors = 300, bytes = 1'000'000'000;
  int threads = 0;
};

class State {
 public:
  explicit State(const Options& options)
      : directory_(options.directory),
        elements_(options.bytes / options.tensors / static_cast<int64_t>(sizeof(float))),
        memory_(options.tensors * elements_ * sizeof(float), "the state"),
        other_(memory_.size(), "what is loaded, or a copy") {
    auto* values = reinterpret_cast<float*>(memory_.data());
    FillNormal({1, 2}, 1, 0, {values, static_cast<size_t>(options.tensors * elements_)});
    const TensorType type{DType::kF32, {elements_}};
    for (int64_t i = 0; i < options.tensors; ++i) {
      PlannedTensor planned{.name = fmt::format("parameters/tensor_{:03}", i),
                            .type = type,
                            .held = {{0, elements_}}};
      tensors_.push_back({std::move(planned), values + i * elements_});
    }
  }

  // A whole save: written, synced, read back, committed.
  void Save(bool verify) {
    SaveCheckpoint(directory_, {.step = ++step_, .run_id = "bench", .attributes = {}},
                   RecordsOf(tensors_), {.verify = verify});
  }

  // Into memory that is there already. Every file's digest is compared.
  void Load() {
    std::optional<Checkpoint> checkpoint = FindNewestValid(directory_, Recovery::kReadOnly);
    if (!checkpoint) Fail(ExitCode::kConfig, "{}: save a checkpoint first", directory_.string());
    auto* to = reinterpret_cast<float*>(other_.data());
    std::vector<TensorDestination> destinations;
    for (const HostTensor& tensor : tensors_) {
      destinations.push_back({tensor.name, {to, tensor.type}});
      to += elements_;
    }
    checkpoint->Read(destinations);
  }
  void CheckLoaded() const {
    if (std::memcmp(other_.data(), memory_.data(), memory_.size()) == 0) return;
    Fail(ExitCode::kCheckpoint, "what was loaded is not what was saved");
  }

  // The bytes alone, into a file whose place on the disk and in the page cache stays.
  void WriteRaw() { WriteRaw("raw", 0); }
  // The same into a new file, and the oldest of three is removed.
  void WriteRawFirst() {
    WriteRaw(fmt::format("raw-{}", ++step_), O_EXCL);
    std::filesystem::remove(directory_ / fmt::format("raw-{}", step_ - SaveOptions().keep));
  }

  // What a step waits for where the state is saved beside training.
  void Copy() { copy_.Take(tensors_); }
  void CopyBytes() { std::memcpy(other_.data(), memory_.data(), memory_.size()); }

 private:
  void WriteRaw(const std::string& name, int flags) {
    CreateDirectories(directory_);
    const Path path = directory_ / name;
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | flags, 0644);
    for (size_t done = 0; file >= 0 && done < memory_.size();) {
      const ssize_t written = write(file, memory_.data() + done, memory_.size() - done);
      if (written <= 0) break;
      done += static_cast<size_t>(written);
    }
    if (file < 0 || fsync(file) != 0 || close(file) != 0) {
      Fail(ExitCode::kResources, "cannot write {}", path.string());
    }
  }

  Path directory_;
  int64_t elements_, step_ = 0;
  Buffer memory_, other_;
  std::vector<HostTensor> tensors_;
  StateCopy copy_;
};

void Serve(const Options& options) {
  State state(options);
  const std::map<std::string, std::function<void()>> operations = {
      {"save", [&] { state.Save(/*verify=*/true); }},
      {"save_unverified", [&] { state.Save(/*verify=*/false); }},
      {"load", [&] { state.Load(); }},
      {"raw", [&] { state.WriteRaw(); }},
      {"raw_first", [&] { state.WriteRawFirst(); }},
      {"copy", [&] { state.Copy(); }},
      {"memcpy", [&] { state.CopyBytes(); }}};
  const std::function<void()>& run = operations.at(options.operation);
  run();
  if (options.operation == "load") state.CheckLoaded();
  PrintLine({{"bytes", options.bytes}});
  TimeEachLine(run);
  PrintLine(PeakMemory());
}

}  // namespace
}  // namespace syntra

int main(int argc, char** argv) {
  CLI::App app("One operation on a state.");
  syntra::Options options;
  app.add_option("--operation", options.operation)
      ->required()
      ->check(
          CLI::IsMember({"save", "save_unverified", "load", "raw", "raw_first", "copy", "memcpy"}));
  app.add_option("--directory", options.directory)->required();
  app.add_option("--tensors", options.tensors);
  app.add_option("--bytes", options.bytes, "of all of them");
  app.add_option("--threads", options.threads, "0: all");
  CLI11_PARSE(app, argc, argv);
  if (options.threads > 0) syntra::SetThreadCount(options.threads);
  return syntra::EndedBy([&] { syntra::Serve(options); });
}
