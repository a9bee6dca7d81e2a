// The file-system seam: every read, write, sync and rename of the program goes through here, so
// errors always name the path and the reason. Failures throw Error(kResources) unless said
// otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace syntra {

using Path = std::filesystem::path;

// An open file descriptor.
class File {
 public:
  static File OpenForRead(const Path& path);
  // Creates `path`, which must not exist yet (O_EXCL, mode 0644).
  static File CreateNew(const Path& path);
  static File OpenForAppend(const Path& path);
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  void Write(std::span<const std::byte> bytes);
  void Write(std::string_view text);
  // Reads up to bytes.size() bytes; returns how many, 0 at the end of the file.
  size_t Read(std::span<std::byte> bytes);
  // The next Read begins at the start of the file.
  void Rewind();
  int64_t Size() const;
  void Sync();   // fsync
  void Close();  // reports errors that a destructor would have to swallow
  int descriptor() const { return descriptor_; }
  const Path& path() const { return path_; }

 private:
  File(Path path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  Path path_;
  int descriptor_;
};

// A read-only memory map of a whole file. Empty files map to an empty span.
class MappedFile {
 public:
  explicit MappedFile(const Path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const Path& path() const { return path_; }

 private:
  Path path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// The whole file, refused with Error(kResources) if it is larger than `limit` bytes.
std::string ReadWholeFile(const Path& path, int64_t limit = int64_t{256} << 20);

// Reads `file` from its start into `bytes`; false if it is shorter.
bool ReadFromStart(File& file, std::span<std::byte> bytes);

// Replaces `path` in one step: a new file beside it is written, fsynced and renamed over it, then
// the directory is fsynced. After a crash the old or the new content is there, never a mixture.
void ReplaceFileDurably(const Path& path, std::string_view content);

// When the content of a file last changed, in nanoseconds since 1970; 0 if there is no such file.
int64_t ChangeTime(const Path& path);

void CreateDirectories(const Path& path);
// As CreateDirectories; what it created survives a crash.
void CreateDirectoriesDurably(const Path& path);
void SyncDirectory(const Path& path);
// rename(2) followed by fsync of the directory that holds `to`.
void RenameDurably(const Path& from, const Path& to);
// Two existing paths change places in one step; the caller syncs their directories. Fails on file
// systems that cannot do it.
void Exchange(const Path& a, const Path& b);
void RemoveAll(const Path& path);
int64_t FreeDiskBytes(const Path& path);

}  // namespace syntra
