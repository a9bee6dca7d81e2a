// SPDX-License-Identifier: Apache-2.0
#include "base/staged_file.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <utility>

#include "base/text.h"

namespace syntra {

StagedFile::StagedFile(Path path, std::string_view content)
    : path_(std::move(path)), temporary_(TemporaryBeside(path_)) {
  RemoveAbandoned();
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

void StagedFile::RemoveAbandoned() const {
  constexpr auto kAge = std::chrono::minutes(1);
  const std::string own = temporary_.filename().string();
  const std::string_view begin = std::string_view(own).substr(0, own.rfind('-') + 1);
  std::error_code code;
  const Path directory = path_.has_parent_path() ? path_.parent_path() : Path(".");
  const auto oldest = std::filesystem::file_time_type::clock::now() - kAge;
  for (std::filesystem::directory_iterator entry(directory, code), end; !code && entry != end;
       entry.increment(code)) {
    const std::string name = entry->path().filename().string();
    int64_t number = 0;
    if (!name.starts_with(begin) || !ParseInt64(name.substr(begin.size()), &number)) continue;
    std::error_code gone;
    const auto changed = std::filesystem::last_write_time(entry->path(), gone);
    if (!gone && changed < oldest) unlink(entry->path().c_str());
  }
}

StagedFile::~StagedFile() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void StagedFile::PutInPlace() {
  RenameDurably(temporary_, path_);
  temporary_.clear();
}

}  // namespace syntra
