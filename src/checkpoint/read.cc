// Reading one checkpoint: verified bytes in memory, then HDF5.
#include "checkpoint/read.h"

#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "checkpoint/layout.h"
#include "checkpoint/shard.h"
#include "core/buffer.h"

namespace syntra {
namespace {

int64_t StepOf(const Path& directory) {
  // A trailing slash leaves an empty file name.
  const Path named = directory.has_filename() ? directory : directory.parent_path();
  const auto step = ParseStepName(named.filename().string());
  if (!step) {
    Fail(ExitCode::kCheckpoint, "{} is not named like a checkpoint, such as {}", directory.string(),
         StepName(12300));
  }
  return *step;
}

}  // namespace

struct Checkpoint::LoadedShard {
  LoadedShard(std::string file_name, Buffer content)
      : file(std::move(file_name)),
        bytes(std::move(content)),
        reader(std::span<const std::byte>(bytes.data(), bytes.size())) {}

  std::string file;
  Buffer bytes;
  ShardReader reader;
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
  Fail(ExitCode::kCheckpoint, "checkpoint {} has no tensor \"{}\"{}", path_.string(), name,
       DidYouMean(name, names));
}

void Checkpoint::Read(std::string_view name, const TensorView& destination) {
  const TensorEntry& entry = Get(name);
  SYNTRA_CHECK(destination.device->is_host(), "checkpoints are read into host memory");
  if (entry.type != destination.type) {
    Fail(ExitCode::kCheckpoint, "tensor {} is {} in checkpoint {}, but {} is needed", name,
         ToString(entry.type), path_.string(), ToString(destination.type));
  }
  Read(name, {static_cast<std::byte*>(destination.data), destination.type.bytes()});
}

void Checkpoint::Read(std::string_view name, std::span<std::byte> destination) {
  const TensorEntry& entry = Get(name);
  if (entry.type.bytes() != destination.size()) {
    Fail(ExitCode::kCheckpoint, "tensor {} is {} of {} bytes in checkpoint {}, but {} are needed",
         name, ToString(entry.type), entry.type.bytes(), path_.string(), destination.size());
  }
  const ErrorContext context([&] {
    return fmt::format("reading tensor {} from {}", name, (path_ / entry.file).string());
  });
  Load(entry.file).reader.Read(std::string(name), entry.type, destination);
}

const Checkpoint::LoadedShard& Checkpoint::Load(const std::string& file) {
  if (loaded_ && loaded_->file == file) return *loaded_;
  loaded_.reset();
  const FileDigest& expected = verified_.manifest.files.at(file);
  Buffer bytes(static_cast<size_t>(expected.bytes), "a checkpoint file");
  const std::span<std::byte> content(bytes.data(), bytes.size());
  if (!ReadFromStart(verified_.files.at(file), content) ||
      HexDigestOf(content) != expected.digest) {
    Fail(ExitCode::kCheckpoint, "{} changed after it was verified", (path_ / file).string());
  }
  loaded_ = std::make_unique<LoadedShard>(file, std::move(bytes));
  return *loaded_;
}

}  // namespace syntra
