// SPDX-License-Identifier: Apache-2.0
// Files that are written beside the ones that they will replace. A full disk may refuse the
// writing, so it comes first; several files can be replaced once all of them are written.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string_view>

#include "base/file.h"

namespace syntra {

// A new file beside the one that it will replace. Its errors name the latter.
class StagedFile {
 public:
  // Empty, to be written and finished.
  explicit StagedFile(const Path& path);
  // Finished, with this content. What killed processes left there of such files is removed, unless
  // it changed in the last minute: then one may still write. For this the directory is listed.
  StagedFile(const Path& path, std::string_view content);
  StagedFile(StagedFile&& other) noexcept;
  StagedFile& operator=(StagedFile&&) = delete;
  ~StagedFile();  // removes it if it was not put in place

  void Write(std::span<const std::byte> bytes);
  void Finish();  // complete and synced
  void PutInPlace();
  // Both, without syncing, which may wait long for a busy disk: for what is of no use after a crash
  // of the machine. Readers find the old or the new content.
  void PutInPlaceUnsynced();

 private:
  Path temporary_;  // empty: it is in place, or moved from
  File file_;
};

// Remove what killed processes left of their StagedFiles, unless it changed in the last `age`.
// Where others may write, too, give an age that no unfinished file reaches. Each call lists the
// directory.
void RemoveTemporariesIn(const Path& directory, std::chrono::seconds age = {});
// Only those meant for `path`.
void RemoveTemporariesOf(const Path& path, std::chrono::seconds age = {});

}  // namespace syntra
