// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/shared_save.h"

#include <fcntl.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <tuple>
#include <utility>

#include "base/digest.h"
#include "base/error.h"
#include "checkpoint/digested_file.h"
#include "checkpoint/layout.h"
#include "checkpoint/retention.h"
#include "checkpoint/save_steps.h"
#include "checkpoint/side_by_side.h"
#include "checkpoint/verify.h"

namespace syntra {
namespace {

// The digest of a file of which these are the parts, in order.
FileDigest ReadBack(const Path& path, int64_t size, std::span<const FilePart> parts) {
  File file = File::OpenForRead(path);
  file.Sync();
  // Advice only: as in other saves, the disk should be met, not the memory.
  posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
  DigestedFile content(file);
  bool good = file.Size() == size;
  for (const FilePart& part : parts) {
    good = good && part.offset == content.at() && content.DigestOfNext(part.bytes) == part.digest;
    if (!good) break;
  }
  if (!good || content.at() != size) {
    Fail(ExitCode::kCheckpoint, "{} is not what was written there, up to byte {}", path.string(),
         content.at());
  }
  return {size, content.Finish()};
}

}  // namespace

std::string ToText(std::span<const FilePart> parts) {
  std::string text;
  for (const FilePart& part : parts) {
    text += fmt::format("{} {} {} {}\n", part.file, part.offset, part.bytes, part.digest);
  }
  return text;
}

std::vector<FilePart> ParseFileParts(const std::string& text) {
  std::istringstream lines(text);
  std::vector<FilePart> parts;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    FilePart part;
    SYNTRA_CHECK(fields >> part.file >> part.offset >> part.bytes >> part.digest,
                 "a part of a checkpoint's file: {}", line);
    parts.push_back(std::move(part));
  }
  return parts;
}

CheckpointFrame MakeFrame(std::vector<TensorRecord> tensors, int64_t shard_bytes) {
  const std::vector<Shard> shards = PlanShards(tensors, shard_bytes);
  CheckpointFrame frame{PlanManifest({}, shards), {}};
  for (size_t i = 0; i < shards.size(); ++i) {
    ShardFrame made = MakeShardFrame(shards[i]);
    LocateTensors(shards[i], made, &frame.outline);
    const std::string unknown(2 * sizeof(Digest), '0');
    frame.outline.files[ShardName(i)] = {made.bytes, unknown};
    for (auto& [offset, content] : made.pieces) {
      FilePart place{ShardName(i), offset, std::ssize(content), HexDigestOf(content)};
      frame.pieces.push_back({std::move(place), std::move(content)});
    }
  }
  return frame;
}

std::vector<FilePart> WriteParts(const Path& directory, const Manifest& outline,
                                 std::span<const TensorRecord> parts) {
  std::map<std::string, File> files;
  std::vector<FilePart> written;
  for (const TensorRecord& part : parts) {
    const TensorEntry& entry = outline.tensors.at(part.name);
    if (!files.contains(entry.file)) {
      files.emplace(entry.file, File::OpenOwnForWrite(directory / entry.file));
    }
    const std::span<const std::byte> bytes(part.data, part.type.bytes());
    const int64_t offset =
        entry.offset + part.begin * static_cast<int64_t>(SizeOf(part.type.dtype));
    files.at(entry.file).WriteAt(offset, bytes);
    written.push_back({entry.file, offset, std::ssize(bytes), HexDigestOf(bytes)});
  }
  for (auto& [name, file] : files) {
    file.Sync();
    file.Close();
  }
  return written;
}

SharedSave::SharedSave(const Path& root, const CheckpointInfo& info, const CheckpointFrame& frame,
                       const SaveOptions& options, std::vector<FileRecord> files)
    : root_(root),
      info_(info),
      frame_(frame),
      options_(options),
      files_(std::move(files)),
      directory_(BuildingPath(root, info.step)) {
  const ErrorContext context([&] { return Subject(); });
  int64_t bytes = 0;
  for (const auto& [name, file] : frame.outline.files) bytes += file.bytes;
  PrepareRoot(root, bytes, frame.outline.files.size(), files_);
  try {
    MakeFiles();
  } catch (...) {
    RemoveQuietly(directory_);
    throw;
  }
}

SharedSave::~SharedSave() {
  if (!committed_) RemoveQuietly(directory_);
}

std::string SharedSave::Subject() const {
  return fmt::format("saving checkpoint {}", (root_ / StepName(info_.step)).string());
}

void SharedSave::MakeFiles() const {
  CreateDirectories(directory_);
  std::map<std::string, File> files;
  for (const auto& [name, file] : frame_.outline.files) {
    files.emplace(name, File::CreateNew(directory_ / name)).first->second.Truncate(file.bytes);
  }
  for (const CheckpointFrame::Piece& piece : frame_.pieces) {
    files.at(piece.place.file).WriteAt(piece.place.offset, piece.content);
  }
}

void SharedSave::Commit(std::vector<FilePart> written) {
  const ErrorContext context([&] { return Subject(); });
  for (const CheckpointFrame::Piece& piece : frame_.pieces) written.push_back(piece.place);
  const auto place = [](const FilePart& part) { return std::tie(part.file, part.offset); };
  std::ranges::sort(written, {}, place);
  Manifest manifest = frame_.outline;
  manifest.info = info_;
  std::vector<FileTask> tasks;
  for (auto& [name, file] : manifest.files) {
    const auto begin = std::ranges::lower_bound(written, name, {}, &FilePart::file);
    const auto end = std::ranges::upper_bound(written, name, {}, &FilePart::file);
    const auto read = [path = directory_ / name, &file = file, parts = std::span(begin, end)] {
      file = ReadBack(path, file.bytes, parts);
    };
    tasks.push_back({file.bytes, read});
  }
  RunSideBySide(tasks);
  FinishDirectory(directory_, files_, &manifest);
  VerifyDirectory(directory_, info_.step, ReadFrom::kDisk);
  committed_ = true;  // from here on what is at directory_ may be the checkpoint that was replaced
  CommitDirectory(directory_, root_, manifest, options_, start_);
}

}  // namespace syntra
