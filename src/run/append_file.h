// SPDX-License-Identifier: Apache-2.0
// A file of records to which training appends. It never stops training: the first error is logged
// as a warning, and records are dropped until writing works again. Where somebody removes or
// replaces the file meanwhile, the next record goes to the one that has its name then.
#pragma once

#include <optional>
#include <string_view>

#include "base/file.h"

namespace syntra {

class AppendFile {
 public:
  explicit AppendFile(const Path& path);

  // Appends all of `record` or none of it.
  void Append(std::string_view record);
  // Makes what was appended survive a crash. Another thread may append meanwhile.
  void Sync() const;

 private:
  void OpenAgainIfReplaced();
  // Gives up the file if it cannot be cut.
  void DropFrom(int64_t size);
  void WarnOnce(const char* problem);

  Path path_;
  std::optional<File> file_;
  bool warned_ = false;
};

}  // namespace syntra
