// SPDX-License-Identifier: Apache-2.0
#include "base/staged_file.h"

#include <unistd.h>

#include <utility>

namespace syntra {

StagedFile::StagedFile(Path path, std::string_view content)
    : path_(std::move(path)), temporary_(TemporaryBeside(path_)) {
  constexpr int64_t kAbandoned = 60;  // seconds
  const Path directory = path_.has_parent_path() ? path_.parent_path() : Path(".");
  RemoveTemporaries(directory, kAbandoned, path_.filename().string());
  try {
    File file = File::CreateNew(temporary_);
    file.Write(content);
    file.Sync();
    file.Close();
  } catch (...) {
    unlink(temporary_.c_str());
    throw;
  }
}

StagedFile::StagedFile(StagedFile&& other) noexcept
    : path_(std::move(other.path_)), temporary_(std::exchange(other.temporary_, {})) {}

StagedFile::~StagedFile() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void StagedFile::PutInPlace() {
  RenameDurably(temporary_, path_);
  temporary_.clear();
}

}  // namespace syntra
