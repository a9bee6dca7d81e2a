// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>

#include "base/digest.h"
#include "base/direct_io.h"
#include "base/error.h"
#include "base/output.h"
#include "base/staged_file.h"
#include "tests/base/child_process.h"
#include "tests/base/error_of.h"
#include "tests/base/refused_calls.h"
#include "tests/base/scratch.h"
#include "tests/base/small_disk.h"

namespace syntra {
namespace {

Path Scratch(const char* name) { return ScratchDirectory("file") / name; }

TEST(File, ReplaceKeepsOneWholeVersion) {
  const Path path = Scratch("replace.txt");
  ReplaceFileDurably(path, "old");
  ReplaceFileDurably(path, "new");
  EXPECT_EQ(ReadWholeFile(path), "new");
  EXPECT_THROW(File::CreateNew(path), Error);
}

TEST(File, ErrorsNamePathAndReason) {
  const std::string error =
      ErrorOf([&] { ReadWholeFile("/nonexistent/file"); }, ExitCode::kResources);
  EXPECT_EQ(error, "cannot read /nonexistent/file: No such file or directory");
}

// Where the system's text leaves open what helps, the error says it.
TEST(File, ErrorsSayWhatHelps) {
  const Path directory = Scratch("remedies");
  CreateDirectories(directory);
  const Path name = directory / std::string(300, 'x');
  EXPECT_EQ(ErrorOf([&] { ReadWholeFile(name); }, ExitCode::kResources),
            fmt::format("cannot read {}: File name too long; choose a shorter one", name.string()));
  ReplaceFileDurably(directory / "a", "x");
  const Outcome ended = RunInChild([&] {
    const rlimit none{0, 0};
    if (setrlimit(RLIMIT_NOFILE, &none) != 0) _exit(1);
    try {
      ReadWholeFile(directory / "a", 9, ExitCode::kData);
    } catch (const Error& error) {
      PrintNote(error.what());
      _exit(static_cast<int>(error.code()));
    }
  });
  EXPECT_EQ(ended.code, static_cast<int>(ExitCode::kResources));
  EXPECT_EQ(ended.err, fmt::format("cannot read {}/a: Too many open files; allow the process more "
                                   "(ulimit -n)\n",
                                   directory.string()));
  CreateDirectories(directory / "full/inside");
  const Path from = directory / "a", to = directory / "full";
  EXPECT_EQ(ErrorOf([&] { RenameDurably(from, to); }, ExitCode::kResources),
            fmt::format("cannot rename {} to {}: Is a directory", from.string(), to.string()));
}

// Where the user names the file, it is not the machine that lacks something.
TEST(File, WhatCannotBeReadHasTheCodeOfItsReader) {
  const Path path = Scratch("large.txt");
  ReplaceFileDurably(path, "1234");
  EXPECT_EQ(ReadWholeFile(path, 4, ExitCode::kData), "1234");
  const std::pair<Path, int64_t> unusable[] = {
      {path, 3}, {"/nonexistent/file", 9}, {path / "inside", 9}, {path.parent_path(), 9}};
  for (const auto& [named, limit] : unusable) {
    try {
      ReadWholeFile(named, limit, ExitCode::kData);
      ADD_FAILURE() << named;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kData) << error.what();
    }
  }
}

// Blocks, memory and the end of a file that the disk cannot write or read directly are written and
// read all the same, and so is what follows them.
TEST(File, PastThePageCacheOrNot) {
  const DirectBlock block(3 * DirectBlock::kAlignment);
  const std::span<std::byte> bytes = block.bytes();
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i % 251);
  const size_t at_once[] = {bytes.size(), DirectBlock::kAlignment, 1000, 1};
  for (const size_t written : at_once) {
    const Path path = Scratch(fmt::format("direct-{}", written).c_str());
    File file = File::CreateNew(path);
    BypassPageCache(file);
    for (size_t at = 0; at < bytes.size(); at += written) {
      file.Write(bytes.subspan(at).first(std::min(written, bytes.size() - at)));
    }
    file.Write(bytes.first(5));
    file.Close();
    const Digest expected = [&] {
      DigestStream digest;
      digest.Add(bytes);
      digest.Add(bytes.first(5));
      return digest.Finish();
    }();
    File read = File::OpenForRead(path);
    BypassPageCache(read);
    EXPECT_EQ(DigestOfRest(read), expected) << written;
    read.Rewind();
    std::vector<std::byte> odd(701);
    DigestStream digest;
    while (const size_t count = read.Read(odd)) digest.Add(std::span(odd).first(count));
    EXPECT_EQ(digest.Finish(), expected) << written;
  }
}

// The system's text for it is about space.
TEST(File, MissingInodesAreNamed) {
  const Path disk = Scratch("inodes");
  CreateDirectories(disk);
  const Outcome ended = RunInChild([&] {
    if (!MayMount() || !MountSmallDisk(disk, "nr_inodes=3")) _exit(77);
    try {
      for (const char* name : {"a", "b", "c"}) {
        PrintNote(fmt::format("{} left", FreeDiskAt(disk).files.value_or(-1)));
        ReplaceFileDurably(disk / name, "x");
      }
    } catch (const Error& error) {
      PrintNote(error.what());
    }
    try {
      CreateDirectories(disk / "d");
    } catch (const Error& error) {
      PrintNote(error.what());
    }
  });
  if (ended.code == 77) GTEST_SKIP() << "cannot mount a tmpfs here";
  constexpr const char* kReason =
      "No space left on device: the file system has no inodes left for new files (df -i)";
  EXPECT_TRUE(ended.err.starts_with("2 left\n1 left\n0 left\ncannot write ")) << ended.err;
  EXPECT_TRUE(ended.Says(fmt::format("cannot create directory {}/d: {}", disk.string(), kReason)))
      << ended.err;
}

// People know the name of the file, not that of the one that takes its place when it is complete;
// only where that cannot be created, it tells in which directory something must change.
TEST(File, ErrorsOfReplacementsNameTheFile) {
  const Path disk = Scratch("small");
  CreateDirectories(disk);
  const Outcome ended = RunInChild([&] {
    if (!MayMount() || !MountSmallDisk(disk, "size=8k")) _exit(77);
    const auto replace = [&](size_t bytes) {
      try {
        ReplaceFileDurably(disk / "log", std::string(bytes, 'x'));
      } catch (const Error& error) {
        PrintNote(fmt::format("{}: {}", static_cast<int>(error.code()), error.what()));
      }
    };
    replace(1);
    replace(9000);
    for (const Path& path : ListDirectory(disk)) PrintNote(path.filename().string());
    if (mount("none", disk.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) != 0) _exit(77);
    replace(1);
    _exit(0);
  });
  if (ended.code == 77) GTEST_SKIP() << "cannot mount a tmpfs here";
  const std::string log = (disk / "log").string();
  const std::string expected = fmt::format(
      "4: cannot write {0}: No space left on device; make room there, then start again\n"
      "log\n"
      "4: cannot write {0}: cannot create {0}.tmp-",
      log);
  EXPECT_TRUE(ended.err.starts_with(expected)) << ended.err;
  EXPECT_TRUE(ended.err.ends_with(
      ": Read-only file system; name another place, or mount this one for writing\n"))
      << ended.err;
}

// Not an exception of the standard library, which would be taken for a bug.
TEST(File, PathsThatCannotBeAreErrors) {
  for (const Path path : {"/dev/null/inside", "/proc/version/inside"}) {
    EXPECT_THROW(ReplaceFileDurably(path, "x"), Error) << path;
    EXPECT_THROW(ReadWholeFile(path), Error) << path;
  }
  EXPECT_THROW(ReplaceFileDurably(std::string(5000, 'x'), "x"), Error);
  EXPECT_THROW(ReadWholeFile("/tmp"), Error);
}

// The message, after the path.
std::string RegularFault(const Path& path) {
  try {
    File::OpenRegularForRead(path, ExitCode::kData);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kData) << error.what();
    const std::string prefix = "cannot read " + path.string() + ": ", message = error.what();
    EXPECT_TRUE(message.starts_with(prefix)) << message;
    return message.substr(prefix.size());
  }
  return "none";
}

// A FIFO without a writer would keep a plain open waiting for ever.
TEST(File, OnlyRegularFilesWhereOthersNameThem) {
  const Path directory = Scratch("kinds");
  CreateDirectories(directory);
  ReplaceFileDurably(directory / "plain", "abc");
  EXPECT_EQ(RegularFault(directory / "plain"), "none");
  EXPECT_EQ(RegularFault(directory), "it is a directory, not a file");
  ASSERT_EQ(mkfifo((directory / "fifo").c_str(), 0600), 0);
  EXPECT_EQ(RegularFault(directory / "fifo"), "it is a FIFO, not a file");
  EXPECT_EQ(RegularFault("/dev/null"), "it is a device, not a file");
  EXPECT_EQ(RegularFault("/dev/zero"), "it is a device, not a file");
  const Path socket_path = directory / "socket";
  const int descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  std::strncpy(address.sun_path, socket_path.c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(bind(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(RegularFault(socket_path), "it is a socket, not a file");
  close(descriptor);
}

// As of a file server that fails between opening and looking.
TEST(File, WhatCannotBeLookedAtIsNoDevice) {
  const Path path = Scratch("away.txt");
  ReplaceFileDurably(path, "x");
  std::thread([&] {
    ASSERT_TRUE(RefuseCalls({SYS_fstat, SYS_newfstatat}));
    EXPECT_EQ(ErrorOf([&] { ReadWholeFile(path, 9, ExitCode::kData); }, ExitCode::kResources),
              fmt::format("cannot read {}: Input/output error; the disk or the file server fails "
                          "(dmesg may say more)",
                          path.string()));
  }).join();
}

TEST(File, ListsInOrder) {
  const Path directory = Scratch("list");
  CreateDirectories(directory);
  for (const char* name : {"b", "a", "c"}) ReplaceFileDurably(directory / name, "");
  EXPECT_EQ(ListDirectory(directory),
            (std::vector<Path>{directory / "a", directory / "b", directory / "c"}));
  EXPECT_THROW(ListDirectory(directory / "a"), Error);
  EXPECT_THROW(ListDirectory(directory / "absent"), Error);
  EXPECT_TRUE(Exists(directory));
  EXPECT_FALSE(Exists(directory / "absent"));
  EXPECT_FALSE(Exists(directory / "a/inside"));
}

TEST(File, MapsEmptyAndFullFiles) {
  const Path path = Scratch("map.bin");
  ReplaceFileDurably(path, "");
  EXPECT_TRUE(MappedFile(path).bytes().empty());
  ReplaceFileDurably(path, "abc");
  EXPECT_EQ(MappedFile(path).bytes().size(), 3u);
}

// Anything but a regular file is refused at once, even if opening it would block.
TEST(File, OnlyRegularFilesAreReadAndAppendedTo) {
  const Path directory = Scratch("kinds");
  CreateDirectories(directory);
  const Path fifo = directory / "fifo", socket_path = directory / "socket";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const int descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = ""};
  strncpy(address.sun_path, socket_path.c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(bind(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  close(descriptor);
  const std::pair<Path, const char*> cases[] = {{fifo, "a FIFO"},
                                                {socket_path, "a socket"},
                                                {"/dev/zero", "a device"},
                                                {directory, "a directory"}};
  for (const auto& [path, kind] : cases) {
    const auto expect_refused = [&](const auto& call) {
      try {
        call();
        ADD_FAILURE() << "took " << path;
      } catch (const Error& error) {
        const std::string message = error.what();
        EXPECT_TRUE(message.ends_with(fmt::format("{}: it is {}, not a file", path.string(), kind)))
            << message;
      }
    };
    expect_refused([&] { File::OpenRegularForRead(path); });
    expect_refused([&] { ReadWholeFile(path); });
    expect_refused([&] { ReadOwnFile(path, 100); });
    expect_refused([&] { MappedFile{path}; });
    expect_refused([&] { File::OpenForAppend(path); });
  }
  std::filesystem::remove_all(directory);
}

TEST(File, OwnFilesAreNotReachedThroughLinks) {
  const Path directory = Scratch("links");
  CreateDirectories(directory);
  const Path target = directory / "target", link = directory / "link";
  ReplaceFileDurably(target, "precious");
  std::filesystem::create_symlink(target, link);
  EXPECT_THROW(File::OpenForAppend(link), Error);
  EXPECT_THROW(File::OpenOwnForWrite(link), Error);
  EXPECT_THROW(ReadOwnFile(link, 100), Error);
  EXPECT_EQ(ReadOwnFile(directory / "none", 100), std::nullopt);
  EXPECT_EQ(ReadOwnFile(target, 100), "precious");
  // A file that the user names may be a link.
  EXPECT_EQ(ReadWholeFile(link), "precious");
  ReplaceFileDurably(link, "new");
  EXPECT_EQ(ReadWholeFile(target), "precious");
  std::filesystem::remove_all(directory);
}

// A file that the user chose stays what it is.
TEST(File, ChosenFilesAreWrittenWhereTheyAre) {
  namespace fs = std::filesystem;
  const Path directory = Scratch("chosen");
  CreateDirectories(directory);
  const Path target = directory / "target", link = directory / "link", pipe = directory / "pipe";
  WriteChosenFile(target, "old");
  fs::permissions(target, fs::perms(0600));
  fs::create_symlink("target", link);
  WriteChosenFile(link, "new");
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(ReadWholeFile(target), "new");
  EXPECT_EQ(fs::status(target).permissions(), fs::perms(0600));
  fs::create_symlink("later", directory / "dangling");
  WriteChosenFile(directory / "dangling", "new");
  EXPECT_EQ(ReadWholeFile(directory / "later"), "new");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  WriteChosenFile(pipe, "text");
  char text[8] = {};
  EXPECT_EQ(read(reader, text, sizeof text), 4);
  EXPECT_STREQ(text, "text");
  close(reader);
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_THROW(WriteChosenFile(directory, "text"), Error);
}

TEST(File, NobodyElseMayWriteNewFiles) {
  const Path path = Scratch("mode.txt");
  const mode_t before = umask(0);
  File::OpenForAppend(path).Write("x");
  umask(before);
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms(0644));
}

TEST(File, TemporariesOfKilledProcessesAreRemoved) {
  const Path directory = Scratch("temporaries");
  CreateDirectories(directory);
  for (const char* name : {"STATUS.tmp-12", "a.tmp-", "b.tmp-x", "STATUS", ".tmp-3"}) {
    ReplaceFileDurably(directory / name, "");
  }
  RemoveTemporariesIn(directory, std::chrono::hours(1));
  EXPECT_TRUE(std::filesystem::exists(directory / "STATUS.tmp-12"));
  RemoveTemporariesIn(directory);
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    left.push_back(entry.path().filename());
  }
  std::ranges::sort(left);
  EXPECT_EQ(left, (std::vector<std::string>{".tmp-3", "STATUS", "a.tmp-", "b.tmp-x"}));
  RemoveTemporariesIn(directory / "none");
  std::filesystem::remove_all(directory);
}

// Where no lock keeps others out, so only of the same file, and not of a process that still writes.
TEST(File, AReplacedFileLosesWhatKilledProcessesLeftOfIt) {
  namespace fs = std::filesystem;
  const Path directory = Scratch("replaced");
  CreateDirectories(directory);
  const auto make = [&](const char* name, int minutes) {
    std::ofstream(directory / name) << "half";
    fs::last_write_time(directory / name,
                        fs::file_time_type::clock::now() - std::chrono::minutes(minutes));
  };
  make("a.jsonl.tmp-12", 2);
  make("a.jsonl.tmp-13", 0);
  make("b.jsonl.tmp-14", 2);
  make("a.jsonl.tmp-", 2);
  ReplaceFileDurably(directory / "a.jsonl", "whole");
  std::vector<std::string> left;
  for (const Path& path : ListDirectory(directory)) left.push_back(path.filename());
  EXPECT_EQ(left, (std::vector<std::string>{"a.jsonl", "a.jsonl.tmp-", "a.jsonl.tmp-13",
                                            "b.jsonl.tmp-14"}));
  RemoveTemporariesOf(directory / "a.jsonl");
  EXPECT_FALSE(Exists(directory / "a.jsonl.tmp-13"));
  EXPECT_TRUE(Exists(directory / "b.jsonl.tmp-14"));
  fs::remove_all(directory);
}

TEST(File, ReadRefusesTooLargeFiles) {
  const Path path = Scratch("large.bin");
  ReplaceFileDurably(path, std::string(100, 'x'));
  EXPECT_THROW(ReadWholeFile(path, 99), Error);
  EXPECT_EQ(ReadWholeFile(path, 100).size(), 100u);
}

}  // namespace
}  // namespace syntra
