// SPDX-License-Identifier: Apache-2.0
// If a save is killed, or an error returned, at any of its system calls, the old state or the new
// one remains. The next save works and removes leftovers.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/resource.h>

#include <cstdio>
#include <fstream>
#include <thread>

#include "base/crash_guard.h"
#include "base/error.h"
#include "base/failure.h"
#include "base/output.h"
#include "checkpoint/layout.h"
#include "checkpoint/tensor_file.h"
#include "tests/base/child_process.h"
#include "tests/base/failing_malloc.h"
#include "tests/base/small_disk.h"
#include "tests/checkpoint/traced_save.h"

namespace syntra {
namespace {

using testing::AnyOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

using Faults = TracedSave;

// After a fault during the save of `step`: old or new, nothing damaged in sight, next save is
// complete.
void ExpectOldOrNew(const Path& root, int64_t step, const std::string& fault) {
  SCOPED_TRACE(fault);
  EXPECT_THAT(NewestStep(root, Recovery::kSetAside), AnyOf(10, step));
  for (const int64_t next : {step, int64_t{30}}) {
    Sample(next).Save(root);
    EXPECT_EQ(NewestStep(root), next);
  }
  const std::vector<std::string> names = DirectoryNames(root);
  EXPECT_EQ(names.size(), 2u);
  EXPECT_THAT(names, Each(StartsWith("step-")));
}

TEST_F(Faults, KilledAtEverySystemCall) {
  struct Way {
    int64_t step;
    int writers = 1;
    bool exchanges = true;
  };
  // Step 10 exists already: that save replaces a checkpoint.
  for (const auto& [step, writers, exchanges] :
       {Way{20}, Way{10}, Way{20, 2}, Way{.step = 10, .exchanges = false}}) {
    writers_ = writers;
    exchanges_ = exchanges;
    int killed = 0;
    std::vector<SystemCall> calls = CallsOfSave(step);
    // A call that is refused cannot also kill.
    if (!exchanges) std::erase_if(calls, [](const auto& call) { return call.name == "renameat2"; });
    for (const SystemCall& call : calls) {
      Reset();
      const int status = SaveInjected(step, call, "signal=KILL");
      killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
      ExpectOldOrNew(root_, step, fmt::format("{} call {}", call.name, call.ordinal));
      if (HasFailure()) return;
    }
    EXPECT_EQ(killed, static_cast<int>(calls.size())) << "faults that never happened";
    EXPECT_GE(killed, 50);
    RecordProperty(fmt::format("kills_step_{}_writers_{}_exchanges_{}", step, writers, exchanges),
                   killed);
  }
}

// A killed process cannot show this: nothing relies on data that is still in memory.
TEST_F(Faults, EverythingIsSyncedBeforeAndAfterTheRename) {
  std::vector<std::string> order;
  for (const SystemCall& call : CallsOfSave(20)) {
    if (call.name == "write" || call.name == "fsync" || call.name == "rename")
      order.push_back(call.name);
  }
  // Two shards, the index and the manifest, each written and synced; the directory; the commit; and
  // the rename of step 5 to the trash. The last write is the log line.
  EXPECT_THAT(order, ElementsAre("write", "fsync", "write", "fsync", "write", "fsync", "write",
                                 "fsync", "fsync", "rename", "fsync", "rename", "fsync", "write"));
}

// A disk that says that it has written a byte and has not.
TEST_F(Faults, AWriteThatIsLostIsFoundBeforeTheRename) {
  for (const int writers : {1, 2}) {
    writers_ = writers;
    std::vector<SystemCall> writes = CallsOfSave(20);
    std::erase_if(writes, [](const SystemCall& call) { return call.name != "write"; });
    ASSERT_GT(writes.size(), 1u);
    writes.pop_back();  // the log line
    for (const SystemCall& call : writes) {
      SCOPED_TRACE(fmt::format("{} writers, write call {}", writers, call.ordinal));
      Reset();
      const int status = SaveInjected(20, call, "retval=1");
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 5) << ReadFile(output_);
      EXPECT_EQ(NewestStep(root_), 10);
    }
  }
}

TEST_F(Faults, RefusedAtEveryFileOperation) {
  const std::set<std::string> operations = {
      "open",      "openat", "write",    "fsync",      "mkdir",     "rename",
      "renameat2", "unlink", "unlinkat", "rmdir",      "read",      "lseek",
      "close",     "statfs", "fstat",    "newfstatat", "getdents64"};
  const std::set<std::string> must_fail = {"write", "fsync", "mkdir", "rename"};
  const std::map<std::string, std::string> reasons = {{"ENOSPC", "No space left on device"},
                                                      {"EIO", "Input/output error"},
                                                      {"EDQUOT", "Disk quota exceeded"},
                                                      {"EROFS", "Read-only file system"},
                                                      {"EACCES", "Permission denied"}};
  int refused = 0;
  for (const SystemCall& call : CallsOfSave(20)) {
    if (!operations.contains(call.name)) continue;
    for (const auto& [error, reason] : reasons) {
      // Reading and closing have no quota; the others also get a fault that lasts.
      if (!must_fail.contains(call.name) && error != "EIO") continue;
      const bool of_data = call.name == "write" || call.name == "fsync";
      if (of_data && (error == "EROFS" || error == "EACCES")) continue;
      for (const char* when : {"", "+"}) {
        Reset();
        const std::string fault =
            fmt::format("{} at {} call {}{}", error, call.name, call.ordinal, when);
        const int status = SaveInjected(20, call, "error=" + error, when);
        ASSERT_TRUE(WIFEXITED(status)) << fault;
        const int code = WEXITSTATUS(status);
        ASSERT_THAT(code, AnyOf(0, 4, 5)) << fault << ReadFile(output_);
        // Only cleaning up after the commit may fail without failing the save.
        if (code == 0) {
          EXPECT_EQ(NewestStep(root_), 20) << fault;
        }
        if (code != 0 && (call.name != "write" || *when == 0)) {
          EXPECT_THAT(ReadFile(output_), HasSubstr("while saving checkpoint")) << fault;
          if (must_fail.contains(call.name)) {
            EXPECT_THAT(ReadFile(output_), HasSubstr(reason)) << fault;
          }
        }
        refused += code != 0;
        ExpectOldOrNew(root_, 20, fault);
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_GE(refused, 50);
  RecordProperty("refused", refused);
}

// A request to stop may come to the thread that saves. Network file systems then give up a call.
TEST_F(Faults, InterruptedCallsFailNoSave) {
  const std::set<std::string> interrupted = {"read", "write", "fsync", "ftruncate", "close"};
  std::set<std::string> made;
  for (const int writers : {1, 2}) {
    writers_ = writers;
    for (const SystemCall& call : CallsOfSave(20)) {
      if (!interrupted.contains(call.name)) continue;
      Reset();
      EXPECT_EQ(SaveInjected(20, call, "error=EINTR"), 0) << call.name << ReadFile(output_);
      EXPECT_EQ(NewestStep(root_), 20);
      made.insert(call.name);
    }
  }
  EXPECT_EQ(made, interrupted);
}

// NFS and Lustre refuse to. Then the old one is renamed first.
TEST_F(Faults, FileSystemThatCannotExchangeDirectories) {
  exchanges_ = false;
  Reset();
  const auto written = ChangeTime(root_ / StepName(10) / kManifestName);
  EXPECT_EQ(Save(10, {}), 0) << ReadFile(output_);
  EXPECT_EQ(NewestStep(root_), 10);
  EXPECT_NE(ChangeTime(root_ / StepName(10) / kManifestName), written);
  EXPECT_THAT(DirectoryNames(root_), ElementsAre(StepName(5), StepName(10)));
}

// File systems from too small to large enough.
std::vector<std::string> SmallDisks() {
  std::vector<std::string> disks;
  for (int kilobytes = 40; kilobytes <= 160; kilobytes += 4) {
    disks.push_back(fmt::format("size={}k", kilobytes));
  }
  // A checkpoint takes five, and two stand side by side; tmpfs counts its root.
  for (int inodes = 2; inodes <= 16; ++inodes) disks.push_back(fmt::format("nr_inodes={}", inodes));
  return disks;
}

// The sentence says what there is too little of.
bool NamesTheShortage(const Error& error, const std::string& disk) {
  const bool of_inodes = std::string(error.what()).find("inodes") != std::string::npos;
  return error.code() == ExitCode::kResources && of_inodes == disk.starts_with("nr_inodes");
}

void SaveIntoSmallDisks(const Path& root) {
  if (!MayMount()) _exit(77);
  int failures = 0, successes = 0;
  for (const std::string& disk : SmallDisks()) {
    if (!MountSmallDisk(root, disk)) _exit(77);
    std::vector<std::byte> values(16 << 10);
    const TensorRecord records[] = {{"a", {DType::kF32, {4096}}, values.data()},
                                    {"b", {DType::kF32, {4096}}, values.data()}};
    const SaveOptions options{.shard_bytes = 16 << 10};
    bool saved = false;
    for (const int64_t step : {1, 2, 3}) {
      try {
        SaveCheckpoint(root, {.step = step}, records, options);
        saved = true;
        ++successes;
      } catch (const Error& error) {
        if (!NamesTheShortage(error, disk)) {
          std::fprintf(stderr, "%s: %s\n", disk.c_str(), error.what());
          _exit(1);
        }
        if (DirectoryNames(root).size() > 2) _exit(2);  // the half-written one takes no space
        ++failures;
      }
      const auto found = FindNewestValid(root, Recovery::kReadOnly);
      if (found.has_value() != saved) _exit(3);
    }
    umount(root.c_str());
  }
  _exit(failures > 10 && successes > 10 ? 0 : 4);
}

TEST(FaultsOfDisks, SmallFileSystems) {
  const Path root = ScratchInMemory("small-disk");
  CreateDirectories(root);
  const pid_t process = fork();
  if (process == 0) SaveIntoSmallDisks(root);
  int status;
  ASSERT_EQ(waitpid(process, &status, 0), process);
  std::filesystem::remove_all(root);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) GTEST_SKIP() << "cannot mount a tmpfs here";
  EXPECT_EQ(status, 0) << "exit code " << WEXITSTATUS(status);
}

// Values go to the disk from where they are: HDF5 sees none of them.
TEST(FaultsOfMemory, ASaveNeedsLessThanItsValues) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer needs the address space that this test takes away";
#endif
  const Path root = ScratchInMemory("memory");
  std::vector<std::byte> values(size_t{64} << 20, std::byte{7});
  const TensorRecord record{"x", {DType::kF32, {16 << 20}}, values.data()};
  const pid_t process = fork();
  if (process == 0) {
    std::ifstream statistics("/proc/self/statm");
    rlim_t pages = 0;
    statistics >> pages;
    const rlim_t bytes = pages * sysconf(_SC_PAGESIZE) + (32 << 20);
    const rlimit limit{bytes, bytes};
    if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(1);
    try {
      SaveCheckpoint(root, {.step = 1}, {&record, 1});
    } catch (const Error& error) {
      std::fputs(error.what(), stderr);
      _exit(2);
    }
    _exit(0);
  }
  int status;
  ASSERT_EQ(waitpid(process, &status, 0), process);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  std::vector<std::byte> read(values.size());
  Checkpoint(root / StepName(1)).Read("x", read);
  EXPECT_TRUE(read == values);
  std::filesystem::remove_all(root);
}

constexpr int kFewerRequests = 77;

// In a child, which ends as the program would.
[[noreturn]] void WorkWithARefusal(const std::function<void()>& work, int64_t request) {
  int code = 0;
  InstallCrashHandlers("of the test");
  RefuseMemory(request);
  try {
    work();
  } catch (...) {
    const Failure failure = CurrentFailure();
    PrintError(failure.message);
    code = static_cast<int>(failure.code);
  }
  _exit(MemoryRequests() < request ? kFewerRequests : code);
}

// Refuses one request for memory after the other, each alone in a run of `work`; returns how many
// runs said that memory is short. `check` sees each run's end.
int RefuseEach(int64_t every, const std::function<void()>& prepare,
               const std::function<void()>& work,
               const std::function<void(const Outcome&)>& check) {
  int shortages = 0;
  Outcome ended;
  for (int64_t request = 1; ended.code != kFewerRequests; request += every) {
    SCOPED_TRACE(fmt::format("request {}", request));
    prepare();
    ended = RunInChild([&] { WorkWithARefusal(work, request); });
    EXPECT_THAT(ended.code, AnyOf(0, 4, kFewerRequests)) << ended.err;
    EXPECT_EQ(ended.code == 4, ended.Says("error: ")) << ended.err;
    check(ended);
    shortages += ended.code == 4;
  }
  return shortages;
}

bool SanitizerBringsItsAllocator() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#else
  return false;
#endif
}

// One request alone, the next of which would succeed: what HDF5 says of it is seldom about memory.
// The save succeeds all the same, or ends with the code for a shortage and leaves an old or a new
// checkpoint.
TEST(FaultsOfMemory, ARequestThatIsRefusedIsAShortage) {
  if (SanitizerBringsItsAllocator()) GTEST_SKIP() << "the sanitizer brings its own allocator";
  constexpr int64_t kEvery = 13;  // 1, which passes too, takes 20 seconds
  const Path root = ScratchInMemory("refused");
  const auto prepare = [&] {
    std::filesystem::remove_all(root);
    Sample(10).Save(root);
  };
  const auto check = [&](const Outcome& ended) {
    EXPECT_THAT(NewestStep(root), AnyOf(ended.code == 0 ? 20 : 10, 20));
    if (ended.code != 0) return;
    // Other programs find the tensors, too.
    EXPECT_EQ(OpenTensorFile(root / StepName(20) / ShardName(0)).tensors().size(), 4u);
  };
  EXPECT_GT(RefuseEach(
                kEvery, prepare, [&] { Sample(20).Save(root); }, check),
            50);
  std::filesystem::remove_all(root);
}

// HDF5 has no part in it. No checkpoint is taken for damaged.
TEST(FaultsOfMemory, ARequestThatIsRefusedWhileReadingIsAShortage) {
  if (SanitizerBringsItsAllocator()) GTEST_SKIP() << "the sanitizer brings its own allocator";
  const Path root = ScratchInMemory("refused-read");
  Sample(10).Save(root);
  Sample(20).Save(root);
  const auto work = [&] {
    if (NewestStep(root, Recovery::kSetAside) != 20) _exit(1);
  };
  const auto check = [&](const Outcome&) {
    EXPECT_THAT(DirectoryNames(root), ElementsAre(StepName(10), StepName(20)));
  };
  EXPECT_GT(RefuseEach(
                1, [] {}, work, check),
            50);
  std::filesystem::remove_all(root);
}

TEST(FaultsOfReaders, SaveAndReadInTwoThreads) {
  const Path root = ScratchInMemory("threads");
  Sample(10).Save(root);
  // Opened first: the second save prunes it.
  Checkpoint checkpoint(root / StepName(10));
  std::jthread saving([&] {
    for (int64_t step = 20; step < 60; ++step) Sample(step).Save(root);
  });
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(Sample(10).Matches(checkpoint));
  saving.join();
  EXPECT_EQ(NewestStep(root), 59);
  std::filesystem::remove_all(root);
}

TEST(FaultsOfReaders, OpenReaderHurtsNoSaveAndKeepsItsCheckpoint) {
  const Path root = ScratchInMemory("reader");
  Sample(10).Save(root);
  int to_reader[2], from_reader[2];
  ASSERT_EQ(pipe(to_reader) | pipe(from_reader), 0);
  const pid_t process = fork();
  if (process == 0) {
    auto checkpoint = FindNewestValid(root, Recovery::kReadOnly);
    // As HDF5 tools do.
    for (const std::string& name : DirectoryNames(root / StepName(10))) {
      flock(open((root / StepName(10) / name).c_str(), O_RDONLY), LOCK_EX);
    }
    char byte = 0;
    if (write(from_reader[1], &byte, 1) != 1 || read(to_reader[0], &byte, 1) != 1) _exit(1);
    // The run has pruned it since.
    if (Exists(root / StepName(10))) _exit(2);
    _exit(Sample(10).Matches(*checkpoint) ? 0 : 3);
  }
  char byte = 0;
  ASSERT_EQ(read(from_reader[0], &byte, 1), 1);
  for (const int64_t step : {10, 20, 30}) Sample(step).Save(root);
  EXPECT_THAT(DirectoryNames(root), ElementsAre(StepName(20), StepName(30)));
  EXPECT_EQ(NewestStep(root), 30);
  ASSERT_EQ(write(to_reader[1], &byte, 1), 1);
  int status;
  ASSERT_EQ(waitpid(process, &status, 0), process);
  EXPECT_EQ(status, 0) << "exit code " << WEXITSTATUS(status);
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace syntra
