// SPDX-License-Identifier: Apache-2.0
#include "base/staged_file.h"

#include <unistd.h>

#include <cstdint>
#include <ctime>
#include <random>
#include <string>
#include <utility>

#include "base/text.h"

namespace syntra {
namespace {

constexpr std::string_view kTemporary = ".tmp-";

// A name that no other process takes: not one on another machine either, where ids of processes are
// often the same.
Path TemporaryBeside(const Path& path) {
  std::random_device random;
  const uint64_t number = (uint64_t{random()} << 32 | random()) >> 1;  // fits ParseInt64
  return fmt::format("{}{}{}", path.string(), kTemporary, number);
}

// The name of the file that a temporary one of this name is meant for; empty if it is none.
std::string_view TargetOf(std::string_view name) {
  const size_t mark = name.rfind(kTemporary);
  int64_t number = 0;
  if (mark == name.npos || !ParseInt64(name.substr(mark + kTemporary.size()), &number)) return {};
  return name.substr(0, mark);
}

// Removes the temporary files of at least this age that were to become `target`; if that is empty,
// of any file.
void RemoveTemporaries(const Path& directory, std::string_view target, std::chrono::seconds age) {
  const int64_t seconds = age.count() > 0 ? age.count() : -1;
  const int64_t newest = int64_t{1000000000} * (static_cast<int64_t>(std::time(nullptr)) - seconds);
  std::error_code code;
  for (std::filesystem::directory_iterator entry(directory, code), end; !code && entry != end;
       entry.increment(code)) {
    const std::string name = entry->path().filename().string();
    const std::string_view meant_for = TargetOf(name);
    if (meant_for.empty() || (!target.empty() && meant_for != target)) continue;
    if (ChangeTime(entry->path()) < newest) unlink(entry->path().c_str());
  }
}

}  // namespace

StagedFile::StagedFile(const Path& path)
    : temporary_(TemporaryBeside(path)), file_(File::CreateToReplace(path, temporary_)) {}

// Clears first: a full disk may need that.
StagedFile::StagedFile(const Path& path, std::string_view content)
    : StagedFile((RemoveTemporariesOf(path, std::chrono::minutes(1)), path)) {
  file_.Write(content);
  Finish();
}

StagedFile::StagedFile(StagedFile&& other) noexcept
    : temporary_(std::exchange(other.temporary_, {})), file_(std::move(other.file_)) {}

StagedFile::~StagedFile() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void StagedFile::Write(std::span<const std::byte> bytes) { file_.Write(bytes); }

void StagedFile::Finish() {
  file_.Sync();
  file_.Close();
}

void StagedFile::PutInPlace() {
  RenameDurably(temporary_, file_.path());
  temporary_.clear();
}

void StagedFile::PutInPlaceUnsynced() {
  file_.Close();
  std::error_code code;
  std::filesystem::rename(temporary_, file_.path(), code);
  if (code) {
    Fail(ExitCode::kResources, "cannot replace {}: {}", file_.path().string(),
         SystemErrorText(code.value()));
  }
  temporary_.clear();
}

void RemoveTemporariesIn(const Path& directory, std::chrono::seconds age) {
  RemoveTemporaries(directory, {}, age);
}

void RemoveTemporariesOf(const Path& path, std::chrono::seconds age) {
  const Path directory = path.has_parent_path() ? path.parent_path() : Path(".");
  RemoveTemporaries(directory, path.filename().string(), age);
}

}  // namespace syntra
