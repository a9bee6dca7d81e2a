// SPDX-License-Identifier: Apache-2.0
// ReplaceFileDurably in two steps: writing, which a full disk may refuse, comes first, so that
// several files can be replaced once all of them are written.
#pragma once

#include <string_view>

#include "base/file.h"

namespace syntra {

// A new file, complete and synced, beside the one that it will replace. What killed processes left
// there of such files is removed, unless it changed in the last minute: then one may still write.
class StagedFile {
 public:
  StagedFile(Path path, std::string_view content);
  StagedFile(StagedFile&& other) noexcept;
  StagedFile& operator=(StagedFile&&) = delete;
  ~StagedFile();  // removes it if it was not put in place
  void PutInPlace();

 private:
  Path path_, temporary_;  // no temporary: it is in place, or moved from
};

}  // namespace syntra
