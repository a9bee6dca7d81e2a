// SPDX-License-Identifier: Apache-2.0
// A checkpoint that several processes write together, each its own part of the tensors. Its files
// are those of SaveCheckpoint, byte for byte.
//
// One process makes a SharedSave, which creates the files with everything but values. Then all
// processes write their parts to these files at once (WriteParts). When all have done so, the first
// process reads everything back, compares it with the parts that each reports, and commits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "checkpoint/manifest.h"
#include "checkpoint/save.h"
#include "checkpoint/tensor_record.h"

namespace syntra {

// Neighbouring bytes of a file that one process has written.
struct FilePart {
  std::string file;
  int64_t offset = 0, bytes = 0;
  std::string digest;  // XXH3-128, hexadecimal
};

// The text by which a process sends parts to another, one line each. ParseFileParts throws
// Error(kInternal) for any other line.
std::string ToText(std::span<const FilePart> parts);
std::vector<FilePart> ParseFileParts(const std::string& text);

// Everything that the files of a state hold except the values; it is the same at every step.
struct CheckpointFrame {
  struct Piece {
    FilePart place;
    std::vector<std::byte> content;
  };
  // Where each tensor lies; the digests of the files are not known yet. Other processes get it by
  // ToText.
  Manifest outline;
  std::vector<Piece> pieces;
};

// The frame of a checkpoint of whole tensors, of which only names and types count.
CheckpointFrame MakeFrame(std::vector<TensorRecord> tensors,
                          int64_t shard_bytes = SaveOptions().shard_bytes);

// Writes parts of tensors to the files in `directory`, durably. Throws Error(kResources).
std::vector<FilePart> WriteParts(const Path& directory, const Manifest& outline,
                                 std::span<const TensorRecord> parts);

class SharedSave {
 public:
  // Makes the files beside the place of the final checkpoint. `frame` and the contents of `files`
  // must outlive the save. Throws as SaveCheckpoint does.
  SharedSave(const Path& root, const CheckpointInfo& info, const CheckpointFrame& frame,
             const SaveOptions& options = {}, std::vector<FileRecord> files = {});
  // Removes what was not committed. No process may still be writing to it.
  ~SharedSave();
  SharedSave(const SharedSave&) = delete;
  SharedSave& operator=(const SharedSave&) = delete;

  const Path& directory() const { return directory_; }
  // `written`: by all processes. Verifies in any case. Throws as SaveCheckpoint does.
  void Commit(std::vector<FilePart> written);

 private:
  std::string Subject() const;
  void MakeFiles() const;

  Path root_;
  CheckpointInfo info_;
  const CheckpointFrame& frame_;
  SaveOptions options_;
  std::vector<FileRecord> files_;
  Path directory_;
  Clock::time_point start_ = Clock::now();
  bool committed_ = false;
};

}  // namespace syntra
