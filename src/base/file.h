// SPDX-License-Identifier: Apache-2.0
// Access to files. Every read, write, sync and rename of the program goes through here, so errors
// always name the path and the reason. Failures throw Error(kResources) unless said otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace syntra {

using Path = std::filesystem::path;

// An open file descriptor.
//
// The functions that say "regular" refuse FIFOs, devices, sockets and directories without waiting:
// opening a FIFO waits for its other end, and a device may have no end. The program's own files
// (logs, locks, what a run remembers) are also never reached through a symbolic link, which in a
// directory that someone else has made could lead to any file of the user's.
class File {
 public:
  static File OpenForRead(const Path& path);
  // As OpenForRead, but only a regular file or a link to one, and no Git LFS pointer. Throws
  // Error(if_unusable) for anything else, and where there is nothing that may be read.
  static File OpenRegularForRead(const Path& path, ExitCode if_unusable = ExitCode::kResources);
  // Creates `path`, which must not exist yet (O_EXCL, mode 0644).
  static File CreateNew(const Path& path);
  // As CreateNew, at `temporary`, for what will be renamed to `target` beside it. Its errors, and
  // path(), name the target, which people know.
  static File CreateToReplace(const Path& target, const Path& temporary);
  // Opens one of the program's own files, which must be regular.
  static File OpenOwnForRead(const Path& path);
  static File OpenForAppend(const Path& path);
  // Opens whatever is there: a file, a device, or a FIFO, for whose reader it waits.
  static File OpenForWrite(const Path& path);
  // Opens one of the program's own files, which must exist, for WriteAt.
  static File OpenOwnForWrite(const Path& path);
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  void Write(std::span<const std::byte> bytes);
  void Write(std::string_view text);
  // Writes at `offset`, which may be past the end. The place of the next Write does not matter.
  void WriteAt(int64_t offset, std::span<const std::byte> bytes);
  // Reads up to bytes.size() bytes; returns how many, 0 at the end of the file.
  size_t Read(std::span<std::byte> bytes);
  // The next Read begins at the start of the file.
  void Rewind();
  int64_t Size() const;
  // Whether the path still names this file: it was neither removed, nor renamed, nor replaced.
  bool IsStillNamed() const;
  void Truncate(int64_t size);
  void Sync();   // fsync
  void Close();  // reports errors that a destructor would have to swallow
  int descriptor() const { return descriptor_; }
  const Path& path() const { return path_; }

 private:
  File(Path path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  Path path_;
  int descriptor_;
};

// A read-only memory map of a whole regular file. Empty files map to an empty span. If another
// process truncates the file while it is mapped, reading the lost part ends this process with a
// message that names the path and the exit code `if_cut_short` (crash_guard.h).
class MappedFile {
 public:
  explicit MappedFile(const Path& path, ExitCode if_cut_short = ExitCode::kResources);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();
  std::span<const std::byte> bytes() const;
  const Path& path() const;

  // From now on bytes [begin, end) are read here and there, so that the system should not read
  // others along with those that are touched.
  void ExpectRandomReads(size_t begin, size_t end) const;
  // Begins to read bytes [begin, end) from the disk unless they are in memory. Does not wait.
  void Prefetch(size_t begin, size_t end) const;

 private:
  struct Mapping;
  std::unique_ptr<const Mapping> mapping_;
};

// The whole of a regular file. Throws Error(if_unusable) if there is none that may be read, or it
// is larger than `limit` bytes.
std::string ReadWholeFile(const Path& path, int64_t limit = int64_t{256} << 20,
                          ExitCode if_unusable = ExitCode::kResources);
// As ReadWholeFile, of one of the program's own files; nullopt if there is none.
std::optional<std::string> ReadOwnFile(const Path& path, int64_t limit);

// Reads `file` from its start into `bytes`; false if it is shorter.
bool ReadFromStart(File& file, std::span<std::byte> bytes);

// Replaces `path` in one step: a new file beside it is written, fsynced and renamed over it, then
// the directory is fsynced. After a crash the old or the new content is there, never a mixture.
void ReplaceFileDurably(const Path& path, std::string_view content);
// Writes a file whose path the user chose. Devices and FIFOs are written into; anything else is
// replaced durably, behind symbolic links, and keeps its permissions. Throws Error(kConfig) if its
// directory is not there.
void WriteChosenFile(const Path& path, std::string_view content);
// Throws as WriteChosenFile would, before time is spent on the content: its directory is not there,
// or `path` is a directory itself.
void RequirePlaceForFile(const Path& path);

// `path`, or the first of path-2, path-3, ... of which there is none.
Path FirstFreeName(const Path& path);

// When the content of a file last changed, in nanoseconds since 1970; 0 if there is no such file.
int64_t ChangeTime(const Path& path);

// The type of what has this name itself; a link is not followed. Throws Error(kResources) if it
// cannot be found out.
std::filesystem::file_type TypeOf(const Path& path);
// Whether there is anything of this name. Throws as TypeOf.
bool Exists(const Path& path);
// Throws Error(kConfig) if there is nothing of a name that the user gave.
void RequireExists(const Path& path);
// Whether this error of opening a path says that the path is wrong, rather than that the machine
// lacks something or fails.
bool IsOfThePath(int error_number);
// Whether there is a directory, or a link to one. Throws as TypeOf.
bool IsDirectory(const Path& path);
// The paths of everything in a directory, in the order of the names.
std::vector<Path> ListDirectory(const Path& path);
void CreateDirectories(const Path& path);
// As CreateDirectories, but the directories that it creates survive a crash.
void CreateDirectoriesDurably(const Path& path);
void SyncDirectory(const Path& path);
// rename(2) followed by fsync of the directory that holds `to`.
void RenameDurably(const Path& from, const Path& to);
// Two existing paths change places in one step; the caller syncs their directories. False on file
// systems that cannot do it, as NFS and Lustre.
bool Exchange(const Path& a, const Path& b);
void RemoveAll(const Path& path);

// The free space of a file system, as far as this user may take it.
struct FreeDisk {
  int64_t bytes = 0;
  // Files and directories that can still be created (inodes); nothing where the file system makes
  // inodes as they are needed.
  std::optional<int64_t> files;
};
FreeDisk FreeDiskAt(const Path& path);

}  // namespace syntra
