// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/crash_guard.h"
#include "base/failure.h"
#include "base/lfs_pointer.h"
#include "base/staged_file.h"
#include "base/uninterrupted.h"

namespace syntra {
namespace {

std::optional<FreeDisk> FindFreeDisk(const Path& path) {
  struct statvfs space;
  if (statvfs(path.c_str(), &space) != 0) return std::nullopt;
  FreeDisk free{static_cast<int64_t>(space.f_bavail) * static_cast<int64_t>(space.f_frsize), {}};
  // Neither btrfs nor some network file systems count inodes.
  if (space.f_files > 0) free.files = static_cast<int64_t>(space.f_favail);
  return free;
}

// What helps where something could not be done to `path` for this reason; "" if the reason says it.
std::string Remedy(int error_number, const Path& path) {
  switch (error_number) {
    case ENOSPC: {
      const Path directory = path.has_parent_path() ? path.parent_path() : Path(".");
      const std::optional<FreeDisk> free = FindFreeDisk(directory);
      // The system's text is about space.
      if (free && free->files && *free->files <= 0) {
        return ": the file system has no inodes left for new files (df -i); remove some files";
      }
      return "; make room there, then start again";
    }
    case EDQUOT:
      return "; make room there, then start again";
    case EFBIG:
      return ": the limit on file sizes (ulimit -f)";
    case ENOMEM:  // also of a mapping if there is memory
      return "; if files are very many (more than half of vm.max_map_count), join small ones";
    case EMFILE:
      return "; allow the process more (ulimit -n)";
    case EACCES:
    case EPERM:
      return "; change its rights or those of its directory, or name another";
    case EROFS:
      return "; name another place, or mount this one for writing";
    case ENAMETOOLONG:
      return "; choose a shorter one";
    case EIO:
      return "; the disk or the file server fails (dmesg may say more)";
    case ESTALE:
      return "; the file server no longer knows it; start again when it is there";
    default:
      return "";
  }
}

std::string Reason(int error_number, const Path& path) {
  return SystemErrorText(error_number) + Remedy(error_number, path);
}

[[noreturn]] void FailSystem(const char* action, const Path& path, int error_number = errno,
                             ExitCode code = ExitCode::kResources) {
  const std::string message =
      fmt::format("cannot {} {}: {}", action, path.string(), Reason(error_number, path));
  if (error_number == ENOMEM) throw OutOfMemory(message);
  throw Error(code, message);
}

const char* KindOf(const struct stat& status) {
  switch (status.st_mode & S_IFMT) {
    case S_IFDIR:
      return "a directory";
    case S_IFIFO:
      return "a FIFO";
    case S_IFSOCK:
      return "a socket";
    case S_IFLNK:
      return "a symbolic link";
    default:
      return "a device";
  }
}

[[noreturn]] void FailNotRegular(const char* action, const Path& path, const struct stat& status,
                                 ExitCode code) {
  Fail(code, "cannot {} {}: it is {}, not a file", action, path.string(), KindOf(status));
}

int Open(const Path& path, int flags) {
  return Uninterrupted([&] { return open(path.c_str(), flags | O_CLOEXEC | O_NOCTTY, 0644); });
}

// Whether a call that failed can be made again: it was interrupted, or cannot pass by the page
// cache (direct_io.h), which from now on is used.
bool MayRepeat(int descriptor) {
  if (errno != EINVAL) return errno == EINTR;
  const int flags = fcntl(descriptor, F_GETFL);
  const bool direct = flags >= 0 && (flags & O_DIRECT);
  const bool repeat = direct && fcntl(descriptor, F_SETFL, flags & ~O_DIRECT) == 0;
  errno = EINVAL;
  return repeat;
}

int OpenOrFail(const Path& path, int flags, const char* action) {
  const int descriptor = Open(path, flags);
  if (descriptor < 0) FailSystem(action, path);
  return descriptor;
}

int OpenRegularOrFail(const Path& path, int flags, const char* action,
                      ExitCode if_unusable = ExitCode::kResources) {
  // Without O_NONBLOCK a FIFO would wait for its other end; regular files know no difference.
  const int descriptor = Open(path, flags | O_NONBLOCK);
  int error_number = errno;
  struct stat status = {};
  if (descriptor >= 0) {
    const bool is_known = fstat(descriptor, &status) == 0;
    if (is_known && S_ISREG(status.st_mode)) return descriptor;
    error_number = errno;
    close(descriptor);
    if (is_known) FailNotRegular(action, path, status, if_unusable);
  }
  // `open` itself refuses links, sockets and directories, not always saying what they are.
  if (lstat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) &&
      (error_number == ELOOP || error_number == ENXIO || error_number == EISDIR)) {
    FailNotRegular(action, path, status, if_unusable);
  }
  FailSystem(action, path, error_number,
             IsOfThePath(error_number) ? if_unusable : ExitCode::kResources);
}

}  // namespace

bool IsOfThePath(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
    case EACCES:
    case EPERM:
    case ELOOP:
    case ENAMETOOLONG:
      return true;
    default:
      return false;
  }
}

File File::OpenForRead(const Path& path) { return {path, OpenOrFail(path, O_RDONLY, "read")}; }

File File::OpenRegularForRead(const Path& path, ExitCode if_unusable) {
  File file(path, OpenRegularOrFail(path, O_RDONLY, "read", if_unusable));
  RefuseLfsPointer(file, if_unusable);
  return file;
}

File File::OpenOwnForRead(const Path& path) {
  return {path, OpenRegularOrFail(path, O_RDONLY | O_NOFOLLOW, "read")};
}

File File::CreateNew(const Path& path) {
  return {path, OpenOrFail(path, O_WRONLY | O_CREAT | O_EXCL, "create")};
}

File File::CreateToReplace(const Path& target, const Path& temporary) {
  const int descriptor = Open(temporary, O_WRONLY | O_CREAT | O_EXCL);
  if (descriptor >= 0) return {target, descriptor};
  const int error_number = errno;
  FailSystem(fmt::format("write {}: cannot create", target.string()).c_str(), temporary,
             error_number);
}

File File::OpenForAppend(const Path& path) {
  return {path, OpenRegularOrFail(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, "append to")};
}

File File::OpenForWrite(const Path& path) { return {path, OpenOrFail(path, O_WRONLY, "write to")}; }

File File::OpenOwnForWrite(const Path& path) {
  return {path, OpenRegularOrFail(path, O_WRONLY | O_NOFOLLOW, "write to")};
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
    if (written < 0 && MayRepeat(descriptor_)) continue;
    if (written < 0) FailSystem("write", path_);
    bytes = bytes.subspan(written);
  }
}

void File::WriteAt(int64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written =
        Uninterrupted([&] { return pwrite(descriptor_, bytes.data(), bytes.size(), offset); });
    if (written < 0) FailSystem("write", path_);
    bytes = bytes.subspan(written);
    offset += written;
  }
}

void File::Write(std::string_view text) { Write(std::as_bytes(std::span(text))); }

size_t File::Read(std::span<std::byte> bytes) {
  ssize_t count;
  do {
    count = read(descriptor_, bytes.data(), bytes.size());
  } while (count < 0 && MayRepeat(descriptor_));
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

bool File::IsStillNamed() const {
  struct stat opened, named;
  if (fstat(descriptor_, &opened) != 0 || stat(path_.c_str(), &named) != 0) {
    // Other errors say nothing of the name: a file server may be away for a moment.
    return errno != ENOENT && errno != ENOTDIR && errno != ESTALE;
  }
  return opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

void File::Truncate(int64_t size) {
  if (Uninterrupted([&] { return ftruncate(descriptor_, size); }) != 0) {
    FailSystem("truncate", path_);
  }
}

void File::Sync() {
  if (Uninterrupted([&] { return fsync(descriptor_); }) != 0) FailSystem("fsync", path_);
}

// Linux closes it even where a signal interrupts the call, which must not be made again.
void File::Close() {
  if (close(std::exchange(descriptor_, -1)) != 0 && errno != EINTR) FailSystem("close", path_);
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

struct MappedFile::Mapping {
  Mapping(const Path& mapped, std::span<const std::byte> content, ExitCode if_cut_short)
      : path(mapped), bytes(content), range(bytes, path.c_str(), if_cut_short) {}
  ~Mapping() {
    if (!bytes.empty()) munmap(const_cast<std::byte*>(bytes.data()), bytes.size());
  }

  Path path;
  std::span<const std::byte> bytes;
  MappedRange range;
};

MappedFile::MappedFile(const Path& path, ExitCode if_cut_short) {
  const File file = File::OpenRegularForRead(path);
  const auto size = static_cast<size_t>(file.Size());
  const std::byte* data = nullptr;
  if (size > 0) {
    void* address = mmap(nullptr, size, PROT_READ, MAP_SHARED, file.descriptor(), 0);
    if (address == MAP_FAILED) FailSystem("map", path);
    data = static_cast<const std::byte*>(address);
  }
  mapping_ = std::make_unique<const Mapping>(path, std::span(data, size), if_cut_short);
}

MappedFile::MappedFile(MappedFile&& other) noexcept = default;
MappedFile& MappedFile::operator=(MappedFile&& other) noexcept = default;
MappedFile::~MappedFile() = default;

std::span<const std::byte> MappedFile::bytes() const { return mapping_->bytes; }
const Path& MappedFile::path() const { return mapping_->path; }

namespace {

// Advice for the pages that have bytes [begin, end). The system is free to ignore it.
void Advise(std::span<const std::byte> bytes, size_t begin, size_t end, int advice) {
  if (begin >= end) return;
  static const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t first = begin / page * page;
  madvise(const_cast<std::byte*>(bytes.data()) + first, end - first, advice);
}

}  // namespace

void MappedFile::ExpectRandomReads(size_t begin, size_t end) const {
  Advise(bytes(), begin, end, MADV_RANDOM);
}

void MappedFile::Prefetch(size_t begin, size_t end) const {
  Advise(bytes(), begin, end, MADV_WILLNEED);
}

namespace {

std::string ReadAll(File file, int64_t limit, ExitCode too_large = ExitCode::kResources) {
  std::string content;
  content.reserve(std::clamp<int64_t>(file.Size(), 0, limit) + 1);
  std::vector<std::byte> block(size_t{1} << 16);
  while (const size_t count = file.Read(block)) {
    if (static_cast<int64_t>(content.size() + count) > limit) {
      Fail(too_large, "cannot read {}: larger than {} bytes", file.path().string(), limit);
    }
    content.append(reinterpret_cast<const char*>(block.data()), count);
  }
  return content;
}

}  // namespace

std::string ReadWholeFile(const Path& path, int64_t limit, ExitCode if_unusable) {
  return ReadAll(File::OpenRegularForRead(path, if_unusable), limit, if_unusable);
}

std::optional<std::string> ReadOwnFile(const Path& path, int64_t limit) {
  struct stat status;
  if (lstat(path.c_str(), &status) != 0 && errno == ENOENT) return std::nullopt;
  return ReadAll(File::OpenOwnForRead(path), limit);
}

void ReplaceFileDurably(const Path& path, std::string_view content) {
  StagedFile(path, content).PutInPlace();
}

namespace {
// Where symbolic links lead, though there may be nothing yet.
Path BehindLinks(Path path) {
  constexpr int kMostLinks = 40;  // as on Linux
  std::error_code code;
  for (int i = 0; i < kMostLinks && std::filesystem::is_symlink(path, code); ++i) {
    path = path.parent_path() / std::filesystem::read_symlink(path, code);
  }
  return path;
}
}  // namespace

void RequirePlaceForFile(const Path& path) {
  std::error_code code;
  const Path behind = BehindLinks(path), folder = behind.parent_path();
  if (!folder.empty() && !Exists(folder)) {
    Fail(ExitCode::kConfig, "cannot write {}: there is no directory {}", path.string(),
         folder.string());
  }
  if (std::filesystem::is_directory(behind, code)) {
    Fail(ExitCode::kConfig, "cannot write {}: it is a directory", path.string());
  }
}

void WriteChosenFile(const Path& path, std::string_view content) {
  namespace fs = std::filesystem;
  std::error_code code;
  const fs::file_status status = fs::status(path, code);
  if (fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status)) {
    File file = File::OpenForWrite(path);
    file.Write(content);
    return file.Close();
  }
  RequirePlaceForFile(path);
  const Path behind = BehindLinks(path);
  ReplaceFileDurably(behind, content);
  if (fs::is_regular_file(status)) fs::permissions(behind, status.permissions(), code);
}

namespace {
std::filesystem::file_type TypeIn(const std::filesystem::file_status& status,
                                  const std::error_code& code, const Path& path) {
  if (code && status.type() != std::filesystem::file_type::not_found) {
    FailSystem("look at", path, code.value());
  }
  return status.type();
}
}  // namespace

std::filesystem::file_type TypeOf(const Path& path) {
  std::error_code code;
  const auto status = std::filesystem::symlink_status(path, code);
  return TypeIn(status, code, path);
}

bool Exists(const Path& path) { return TypeOf(path) != std::filesystem::file_type::not_found; }

void RequireExists(const Path& path) {
  if (!Exists(path)) Fail(ExitCode::kConfig, "{} does not exist", path.string());
}

bool IsDirectory(const Path& path) {
  std::error_code code;
  const auto status = std::filesystem::status(path, code);
  return TypeIn(status, code, path) == std::filesystem::file_type::directory;
}

std::vector<Path> ListDirectory(const Path& path) {
  std::vector<Path> paths;
  std::error_code code;
  std::filesystem::directory_iterator entry(path, code), end;
  for (; !code && entry != end; entry.increment(code)) paths.push_back(entry->path());
  if (code) FailSystem("list directory", path, code.value());
  std::sort(paths.begin(), paths.end());
  return paths;
}

void CreateDirectories(const Path& path) {
  std::error_code code;
  std::filesystem::create_directories(path, code);
  if (code) FailSystem("create directory", path, code.value());
}

void CreateDirectoriesDurably(const Path& path) {
  // Without a trailing slash, which would make a directory its own parent.
  const Path directory = (path / "").parent_path();
  if (directory.empty()) return;
  if (Exists(directory)) return;
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
  if (rename(from.c_str(), to.c_str()) != 0) {
    const int error_number = errno;
    FailSystem(fmt::format("rename {} to", from.string()).c_str(), to, error_number);
  }
  SyncDirectory(to.parent_path());
}

bool Exchange(const Path& a, const Path& b) {
  if (renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0) return true;
  if (errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP) return false;
  FailSystem("replace", b);
}

void RemoveAll(const Path& path) {
  std::error_code code;
  std::filesystem::remove_all(path, code);
  if (code) FailSystem("remove", path, code.value());
}

Path FirstFreeName(const Path& path) {
  Path free = path;
  for (int i = 2; Exists(free); ++i) free = fmt::format("{}-{}", path.string(), i);
  return free;
}

int64_t ChangeTime(const Path& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return 0;
  return int64_t{1000000000} * status.st_mtim.tv_sec + status.st_mtim.tv_nsec;
}

FreeDisk FreeDiskAt(const Path& path) {
  const std::optional<FreeDisk> free = FindFreeDisk(path);
  if (!free) FailSystem("read free space of", path);
  return *free;
}

}  // namespace syntra
