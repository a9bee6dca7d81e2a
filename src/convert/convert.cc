// SPDX-License-Identifier: Apache-2.0
#include "convert/convert.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/directories_below.h"
#include "base/error.h"
#include "base/file.h"
#include "base/host.h"
#include "base/text.h"
#include "convert/average.h"
#include "kernels/bfloat16.h"

namespace syntra {
namespace {

// The directory that Convert writes: it lies beside the output, on the same file system, and is
// removed if anything fails; after the process was killed, by the next conversion to that output on
// the same machine.
class Building {
 public:
  explicit Building(const Path& output)
      : place_(output.parent_path()),
        prefix_(fmt::format(".{}.tmp-{}-", output.filename().string(), HostName())),
        path_(place_ / (prefix_ + std::to_string(getpid()))) {
    RemoveAbandoned();
    CreateDirectories(path_);
  }
  ~Building() {
    try {
      if (Exists(path_)) RemoveAll(path_);
    } catch (const Error&) {
      // The error that led here is the one to tell.
    }
  }
  Building(const Building&) = delete;
  Building& operator=(const Building&) = delete;
  const Path& path() const { return path_; }

 private:
  void RemoveAbandoned() const {
    for (const Path& path : ListDirectory(place_)) {
      const std::string name = path.filename().string();
      if (!name.starts_with(prefix_)) continue;
      const std::optional<pid_t> process = ParseProcessId(name.substr(prefix_.size()));
      if (process && Abandoned(*process)) RemoveAll(path);
    }
  }

  Path place_;
  std::string prefix_;
  Path path_;
};

Path EmptyOutput(const Path& output) {
  Path path = std::filesystem::absolute(output).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  if (std::filesystem::is_symlink(path)) {
    Fail(ExitCode::kConfig,
         "--output {} is a symbolic link, which a finished directory cannot replace; name the "
         "directory that it leads to",
         output.string());
  }
  if (std::error_code code; std::filesystem::equivalent(path, ".", code)) {
    Fail(
        ExitCode::kConfig,
        "--output {} is the working directory, which a finished one cannot replace; name a new one "
        "in it",
        output.string());
  }
  if (Exists(path) && (!IsDirectory(path) || !ListDirectory(path).empty())) {
    Fail(ExitCode::kConfig, "--output {} is there already and is not empty; name a new directory",
         output.string());
  }
  CreateDirectoriesDurably(path.parent_path());
  return path;
}

const ModelFormat& FormatOf(const Path& input) {
  RequireExists(input);
  if (const ModelFormat* format = FindFormat(input)) return *format;
  if (IsDirectory(input)) {
    const std::vector<std::string> inside = DirectoriesBelow(input, FindFormat);
    if (!inside.empty()) {
      Fail(ExitCode::kCheckpoint,
           "{} is no model itself, but these in it are; name one of them: {}", input.string(),
           JoinFirst(inside, 4));
    }
  } else if (const Path folder = std::filesystem::absolute(input).parent_path();
             FindFormat(folder)) {
    Fail(ExitCode::kCheckpoint, "{} is no model itself, but its directory is; name that: {}",
         input.string(), folder.string());
  }
  Fail(ExitCode::kCheckpoint,
       "{} is no model: neither a checkpoint, nor a directory with some, nor one with config.json "
       "and model.safetensors",
       input.string());
}

void RequireEqual(bool equal, std::string_view what) {
  if (equal) return;
  Fail(ExitCode::kCheckpoint,
       "{} does not read back as it was written; nothing is left of it. The disk may be failing",
       what);
}

void CompareParameter(StoredModel& model, StoredModel& written, const std::string& name,
                      SafetensorsType stored) {
  const TensorType& type = model.parameters->tensors().find(name)->second;
  const auto found = written.parameters->tensors().find(name);
  RequireEqual(found != written.parameters->tensors().end() && found->second == type, name);
  std::vector<float> expected(type.shape.size()), values(type.shape.size());
  ReadFinite(model, name, expected);
  if (stored == SafetensorsType::kBF16) {
    std::ranges::transform(expected, expected.begin(),
                           [](float value) { return ToFloat(ToBFloat16(value)); });
  }
  written.parameters->Read(name, values);
  RequireEqual(std::memcmp(expected.data(), values.data(), values.size() * sizeof(float)) == 0,
               "parameter " + name);
}

void Compare(StoredModel& model, StoredModel& written, SafetensorsType stored) {
  RequireEqual(IsSameModel(model, written), "the configuration");
  RequireEqual(model.tokenizer == written.tokenizer &&
                   model.config.data().extra_ids() == written.config.data().extra_ids(),
               "the tokenizer");
  RequireEqual(model.parameters->tensors().size() == written.parameters->tensors().size(),
               "the list of tensors");
  for (const auto& [name, type] : model.parameters->tensors()) {
    CompareParameter(model, written, name, stored);
  }
}

}  // namespace

Conversion Convert(const Path& input, const Path& output, const ModelFormat& to,
                   const SafetensorsOptions& options, const Path& tokenizer, int average) {
  const Path final_path = EmptyOutput(output);
  const ModelFormat& from = FormatOf(input);
  StoredModel model =
      average > 1 ? OpenAverage(input, average, tokenizer) : from.open(input, tokenizer);
  const ErrorContext context(
      [&] { return fmt::format("converting {} to {}", model.source, output.string()); });
  const Building building(final_path);
  to.write(model, building.path(), options);
  SyncDirectory(building.path());
  StoredModel written = to.open(building.path(), {});
  Compare(model, written, options.type);
  RenameDurably(building.path(), final_path);
  Conversion done{from.name, to.name, model.source, 0,
                  static_cast<int64_t>(model.parameters->tensors().size())};
  for (const auto& [name, type] : model.parameters->tensors()) {
    done.parameters += type.shape.size();
  }
  return done;
}

}  // namespace syntra
