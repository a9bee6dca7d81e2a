// SPDX-License-Identifier: Apache-2.0
// Comparison of a checkpoint directory with its manifest.
#include "checkpoint/verify.h"

#include <span>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/direct_io.h"
#include "base/error.h"
#include "base/lfs_pointer.h"
#include "checkpoint/hdf5_contents.h"
#include "checkpoint/layout.h"
#include "checkpoint/side_by_side.h"

namespace syntra {
namespace {

constexpr int64_t kMaxManifestBytes = int64_t{256} << 20;

// The code for a file that is not damaged: its checkpoint is passed over, but not set aside.
constexpr ExitCode kMayComeLater = ExitCode::kResources;

// Links are refused even where they lead to good content: it could change without us.
void RequireRegularFile(const Path& path) {
  switch (TypeOf(path)) {
    case std::filesystem::file_type::regular:
      return;
    case std::filesystem::file_type::not_found:
      Fail(ExitCode::kCheckpoint, "{} is missing", path.string());
    case std::filesystem::file_type::symlink:
      Fail(ExitCode::kCheckpoint, "{} is a symbolic link", path.string());
    default:
      Fail(ExitCode::kCheckpoint, "{} is not a regular file", path.string());
  }
}

std::string TextOfManifest(const Path& path) {
  RequireRegularFile(path);
  File file = File::OpenForRead(path);
  RefuseLfsPointer(file, kMayComeLater);
  const int64_t size = file.Size();
  if (size > kMaxManifestBytes) {
    Fail(ExitCode::kCheckpoint, "{} of {} bytes is too large", path.string(), size);
  }
  std::string text(size, '\0');
  if (!ReadFromStart(file, std::as_writable_bytes(std::span(text)))) {
    Fail(ExitCode::kCheckpoint, "{} shrank while it was read", path.string());
  }
  return text;
}

File OpenVerified(const Path& path, const FileDigest& expected,
                  ReadFrom from = ReadFrom::kPageCache) {
  RequireRegularFile(path);
  File file = File::OpenForRead(path);
  RefuseLfsPointer(file, kMayComeLater);
  if (from == ReadFrom::kDisk) BypassPageCache(file);
  if (const int64_t size = file.Size(); size != expected.bytes) {
    Fail(ExitCode::kCheckpoint, "{} is {}: expected {} bytes, found {}", path.string(),
         size < expected.bytes ? "truncated" : "too long", expected.bytes, size);
  }
  file.Rewind();
  if (const std::string found = ToHex(DigestOfRest(file)); found != expected.digest) {
    Fail(ExitCode::kCheckpoint, "{} is damaged: expected XXH3-128 {}, found {}", path.string(),
         expected.digest, found);
  }
  return file;
}

std::map<std::string, File> OpenVerified(const Path& directory,
                                         const std::map<std::string, FileDigest>& expected,
                                         ReadFrom from) {
  std::map<std::string, std::optional<File>> opened;
  std::vector<FileTask> tasks;
  for (const auto& [name, digest] : expected) {
    const auto open = [from, path = directory / name, &file = opened[name], &digest = digest] {
      file = OpenVerified(path, digest, from);
    };
    tasks.push_back({digest.bytes, open});
  }
  RunSideBySide(tasks);
  std::map<std::string, File> files;
  for (auto& [name, file] : opened) files.emplace(name, std::move(*file));
  return files;
}

// Version 1 leaves it to HDF5 where a tensor lies in its file.
void LocateAllTensors(VerifiedDirectory* verified) {
  std::map<std::string, Hdf5Contents> contents;
  for (auto& [name, entry] : verified->manifest.tensors) {
    File& file = verified->files.at(entry.file);
    const ErrorContext context([&] { return "looking for tensors in " + file.path().string(); });
    if (!contents.contains(entry.file)) {
      const Buffer bytes = ReadVerified(file, verified->manifest.files.at(entry.file));
      contents.emplace(entry.file, ContentsOfHdf5({bytes.data(), bytes.size()}, entry.file));
    }
    const auto& tensors = contents.at(entry.file).tensors;
    const auto found = tensors.find(name);
    if (found == tensors.end() || found->second.type != entry.type) {
      Fail(ExitCode::kCheckpoint, "tensor {} is not stored as {}, as the manifest says", name,
           ToString(entry.type));
    }
    entry.offset = found->second.offset;
  }
}

}  // namespace

Manifest ReadManifest(const Path& directory) {
  return ParseManifest(TextOfManifest(directory / kManifestName));
}

VerifiedDirectory VerifyDirectory(const Path& directory, std::optional<int64_t> expected_step,
                                  ReadFrom from) {
  const ErrorContext context([&] { return fmt::format("verifying {}", directory.string()); });
  if (TypeOf(directory) != std::filesystem::file_type::directory) {
    Fail(ExitCode::kCheckpoint, "{} is not a directory", directory.string());
  }
  VerifiedDirectory verified{ReadManifest(directory), {}};
  const Manifest& manifest = verified.manifest;
  if (expected_step && manifest.info.step != *expected_step) {
    Fail(ExitCode::kCheckpoint, "{} holds step {}, not step {}", directory.string(),
         manifest.info.step, *expected_step);
  }
  for (const std::string& name : DirectoryNames(directory)) {
    if (name != kManifestName && !manifest.files.contains(name)) {
      Fail(ExitCode::kCheckpoint, "{} is an extra file that the manifest does not name",
           (directory / name).string());
    }
  }
  verified.files = OpenVerified(directory, manifest.files, from);
  if (manifest.version == 1) LocateAllTensors(&verified);
  return verified;
}

Buffer ReadVerified(File& file, const FileDigest& expected) {
  Buffer bytes(static_cast<size_t>(expected.bytes), "a checkpoint file");
  const std::span<std::byte> content(bytes.data(), bytes.size());
  if (!ReadFromStart(file, content) || HexDigestOf(content) != expected.digest) {
    Fail(ExitCode::kCheckpoint, "{} changed after it was verified", file.path().string());
  }
  return bytes;
}

std::optional<std::string> ReadCheckpointFile(const Path& directory, const std::string& name) {
  const Manifest manifest = ReadManifest(directory);
  const auto expected = manifest.files.find(name);
  if (expected == manifest.files.end()) return std::nullopt;
  File file = OpenVerified(directory / name, expected->second);
  const Buffer bytes = ReadVerified(file, expected->second);
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace syntra
