// SPDX-License-Identifier: Apache-2.0
// Reading one checkpoint: verified bytes in memory.
#include "checkpoint/read.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "checkpoint/digested_file.h"
#include "checkpoint/layout.h"
#include "checkpoint/side_by_side.h"
#include "core/buffer.h"

namespace syntra {
namespace {

// Unless it was given a name of its own.
std::optional<int64_t> StepOf(const Path& directory) {
  // "." and a trailing slash hide the name.
  const Path named = std::filesystem::absolute(directory / "").lexically_normal();
  return ParseStepName(named.parent_path().filename().string());
}

std::span<std::byte> BytesOf(const TensorView& view) {
  return {static_cast<std::byte*>(view.data), view.type.bytes()};
}

// Where bytes of a file go.
struct Place {
  int64_t offset;
  std::span<std::byte> bytes;
};

void ReadPlaces(File& file, const FileDigest& expected, std::vector<Place> places) {
  std::ranges::sort(places, {}, &Place::offset);
  DigestedFile digested(file);
  bool good = true;
  for (const Place& place : places) {
    good = good && digested.SkipTo(place.offset) && digested.Read(place.bytes);
  }
  good = good && digested.SkipTo(expected.bytes);
  if (!good || digested.Finish() != expected.digest) {
    Fail(ExitCode::kCheckpoint, "{} changed after it was verified", file.path().string());
  }
}

}  // namespace

struct Checkpoint::LoadedFile {
  std::string name;
  Buffer bytes;
};

Checkpoint::Checkpoint(const Path& directory)
    : Checkpoint(directory, VerifyDirectory(directory, StepOf(directory))) {}

Checkpoint::Checkpoint(const Path& directory, VerifiedDirectory verified)
    : path_(directory), verified_(std::move(verified)) {}

Checkpoint::Checkpoint(Checkpoint&& other) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&& other) noexcept = default;
Checkpoint::~Checkpoint() = default;

const TensorType* Checkpoint::Find(std::string_view name) const {
  const auto it = tensors().find(name);
  return it == tensors().end() ? nullptr : &it->second.type;
}

const TensorEntry& Checkpoint::Get(std::string_view name) const {
  const auto it = tensors().find(name);
  if (it != tensors().end()) return it->second;
  std::vector<std::string> names;
  for (const auto& [known, entry] : tensors()) names.push_back(known);
  Fail(ExitCode::kCheckpoint, "{} has no tensor \"{}\"{}", path_.string(), name,
       DidYouMean(name, names));
}

const TensorEntry& Checkpoint::GetFor(std::string_view name, const TensorView& destination) const {
  const TensorEntry& entry = Get(name);
  SYNTRA_CHECK(destination.device->is_host(), "checkpoints are read into host memory");
  if (entry.type != destination.type) {
    Fail(ExitCode::kCheckpoint, "tensor {} is {} in {}, but {} is needed", name,
         ToString(entry.type), path_.string(), ToString(destination.type));
  }
  return entry;
}

void Checkpoint::Read(std::string_view name, const TensorView& destination) {
  GetFor(name, destination);
  Read(name, BytesOf(destination));
}

void Checkpoint::Read(std::string_view name, std::span<std::byte> destination) {
  const TensorEntry& entry = Get(name);
  if (entry.type.bytes() != destination.size()) {
    Fail(ExitCode::kCheckpoint, "tensor {} is {} of {} bytes in {}, but {} are needed", name,
         ToString(entry.type), entry.type.bytes(), path_.string(), destination.size());
  }
  const ErrorContext context([&] {
    return fmt::format("reading tensor {} from {}", name,
                       verified_.files.at(entry.file).path().string());
  });
  // Within the file: the manifest was held to that.
  std::memcpy(destination.data(), Load(entry.file).data() + entry.offset, destination.size());
}

void Checkpoint::Read(std::span<const TensorDestination> destinations) {
  std::map<std::string, std::vector<Place>> by_file;
  for (const auto& [name, view] : destinations) {
    const TensorEntry& entry = GetFor(name, view);
    by_file[entry.file].push_back({entry.offset, BytesOf(view)});
  }
  std::vector<FileTask> tasks;
  for (const auto& [name, places] : by_file) {
    const FileDigest& expected = verified_.manifest.files.at(name);
    const auto read = [&expected, &file = verified_.files.at(name), &places = places] {
      ReadPlaces(file, expected, places);
    };
    tasks.push_back({expected.bytes, read});
  }
  RunSideBySide(tasks);
}

std::optional<std::string> Checkpoint::ReadFile(const std::string& name) {
  const auto expected = verified_.manifest.files.find(name);
  if (expected == verified_.manifest.files.end()) return std::nullopt;
  const Buffer bytes = ReadVerified(verified_.files.at(name), expected->second);
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

const Buffer& Checkpoint::Load(const std::string& name) {
  if (!loaded_ || loaded_->name != name) {
    loaded_.reset();
    Buffer bytes = ReadVerified(verified_.files.at(name), verified_.manifest.files.at(name));
    loaded_ = std::make_unique<LoadedFile>(LoadedFile{name, std::move(bytes)});
  }
  return loaded_->bytes;
}

int64_t OptimizerStepsBefore(const Checkpoint& checkpoint) {
  const auto& attributes = checkpoint.info().attributes;
  const auto it = attributes.find(kOptimizerStepsAttribute);
  int64_t steps = 0;
  // The first checkpoints have no such attribute.
  if (it == attributes.end() || (ParseInt64(it->second, &steps) && steps >= 0)) return steps;
  Fail(ExitCode::kCheckpoint, "{}: the attribute {} is not a number of steps: {}",
       checkpoint.path().string(), kOptimizerStepsAttribute, Printable(it->second));
}

}  // namespace syntra
