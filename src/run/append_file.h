// SPDX-License-Identifier: Apache-2.0
// A file of records to which training appends. It never stops training: the first error is logged
// as a warning, and records are dropped until writing works again, however long that takes. Where
// somebody removes or replaces the file meanwhile, the next record goes to the one that has its
// name then.
#pragma once

#include <cstdint>
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
  // Opens the file that has the name now, unless it is open.
  void Open();
  // A part of a record would spoil the one after it.
  void CutPart();
  void WarnOnce(const char* problem);

  Path path_;
  std::optional<File> file_;
  std::optional<int64_t> part_;  // where a record begins that may not be whole
  bool warned_ = false;
};

}  // namespace syntra
