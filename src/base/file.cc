#include "base/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/error.h"

namespace syntra {
namespace {

[[noreturn]] void FailSystem(const char* action, const Path& path) {
  const int error_number = errno;
  Fail(ExitCode::kResources, "cannot {} {}: {}", action, path.string(),
       SystemErrorText(error_number));
}

int OpenOrFail(const Path& path, int flags, const char* action) {
  int descriptor;
  do {
    descriptor = open(path.c_str(), flags | O_CLOEXEC, 0644);
  } while (descriptor < 0 && errno == EINTR);
  if (descriptor < 0) FailSystem(action, path);
  return descriptor;
}

}  // namespace

File File::OpenForRead(const Path& path) { return {path, OpenOrFail(path, O_RDONLY, "read")}; }

File File::CreateNew(const Path& path) {
  return {path, OpenOrFail(path, O_WRONLY | O_CREAT | O_EXCL, "create")};
}

File File::OpenForAppend(const Path& path) {
  return {path, OpenOrFail(path, O_WRONLY | O_CREAT | O_APPEND, "append to")};
}

File::File(File&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

File& File::operator=(File&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

File::~File() {
  if (descriptor_ >= 0) close(descriptor_);
}

void File::Write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) FailSystem("write", path_);
    bytes = bytes.subspan(written);
  }
}

void File::Write(std::string_view text) { Write(std::as_bytes(std::span(text))); }

size_t File::Read(std::span<std::byte> bytes) {
  ssize_t count;
  do {
    count = read(descriptor_, bytes.data(), bytes.size());
  } while (count < 0 && errno == EINTR);
  if (count < 0) FailSystem("read", path_);
  return count;
}

void File::Rewind() {
  if (lseek(descriptor_, 0, SEEK_SET) < 0) FailSystem("seek in", path_);
}

int64_t File::Size() const {
  struct stat status;
  if (fstat(descriptor_, &status) != 0) FailSystem("stat", path_);
  return status.st_size;
}

void File::Sync() {
  if (fsync(descriptor_) != 0) FailSystem("fsync", path_);
}

void File::Close() {
  if (close(std::exchange(descriptor_, -1)) != 0) FailSystem("close", path_);
}

MappedFile::MappedFile(const Path& path) : path_(path) {
  const File file = File::OpenForRead(path);
  size_ = file.Size();
  if (size_ == 0) return;
  void* address = mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.descriptor(), 0);
  if (address == MAP_FAILED) FailSystem("map", path);
  data_ = static_cast<const std::byte*>(address);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_) munmap(const_cast<std::byte*>(data_), size_);
}

bool ReadFromStart(File& file, std::span<std::byte> bytes) {
  file.Rewind();
  while (!bytes.empty()) {
    const size_t count = file.Read(bytes);
    if (count == 0) return false;
    bytes = bytes.subspan(count);
  }
  return true;
}

std::string ReadWholeFile(const Path& path, int64_t limit) {
  File file = File::OpenForRead(path);
  struct stat status;
  if (fstat(file.descriptor(), &status) != 0) FailSystem("stat", path);
  if (S_ISDIR(status.st_mode)) {
    Fail(ExitCode::kResources, "cannot read {}: it is a directory", path.string());
  }
  std::string content;
  content.reserve(std::clamp<int64_t>(status.st_size, 0, limit) + 1);
  std::byte block[65536];
  while (const size_t count = file.Read(block)) {
    if (static_cast<int64_t>(content.size() + count) > limit) {
      Fail(ExitCode::kResources, "cannot read {}: larger than {} bytes", path.string(), limit);
    }
    content.append(reinterpret_cast<const char*>(block), count);
  }
  return content;
}

void ReplaceFileDurably(const Path& path, std::string_view content) {
  const Path temporary = path.string() + fmt::format(".tmp-{}", getpid());
  // Left by a process of this id that was killed. If it cannot be removed, creating it says why.
  unlink(temporary.c_str());
  try {
    File file = File::CreateNew(temporary);
    file.Write(content);
    file.Sync();
    file.Close();
    RenameDurably(temporary, path);
  } catch (...) {
    unlink(temporary.c_str());
    throw;
  }
}

void CreateDirectories(const Path& path) {
  std::error_code code;
  std::filesystem::create_directories(path, code);
  if (code) {
    Fail(ExitCode::kResources, "cannot create directory {}: {}", path.string(), code.message());
  }
}

void CreateDirectoriesDurably(const Path& path) {
  // Without a trailing slash, which would make a directory its own parent.
  const Path directory = (path / "").parent_path();
  if (directory.empty()) return;
  std::error_code code;
  const bool exists = std::filesystem::exists(directory, code);
  if (code) {
    Fail(ExitCode::kResources, "cannot look at {}: {}", directory.string(), code.message());
  }
  if (exists) return;
  CreateDirectoriesDurably(directory.parent_path());
  CreateDirectories(directory);
  SyncDirectory(directory.parent_path());
}

void SyncDirectory(const Path& path) {
  const Path directory = path.empty() ? Path(".") : path;
  File file = File::OpenForRead(directory);
  file.Sync();
}

void RenameDurably(const Path& from, const Path& to) {
  if (rename(from.c_str(), to.c_str()) != 0) FailSystem("rename to", to);
  SyncDirectory(to.parent_path());
}

void Exchange(const Path& a, const Path& b) {
  if (renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) != 0) {
    const int error_number = errno;
    Fail(ExitCode::kResources, "cannot replace the existing {}: {}; move it away", b.string(),
         SystemErrorText(error_number));
  }
}

void RemoveAll(const Path& path) {
  std::error_code code;
  std::filesystem::remove_all(path, code);
  if (code) Fail(ExitCode::kResources, "cannot remove {}: {}", path.string(), code.message());
}

int64_t ChangeTime(const Path& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return 0;
  return int64_t{1000000000} * status.st_mtim.tv_sec + status.st_mtim.tv_nsec;
}

int64_t FreeDiskBytes(const Path& path) {
  std::error_code code;
  const auto space = std::filesystem::space(path, code);
  if (code) {
    Fail(ExitCode::kResources, "cannot read free space of {}: {}", path.string(), code.message());
  }
  return static_cast<int64_t>(space.available);
}

}  // namespace syntra
