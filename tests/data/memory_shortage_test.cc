// SPDX-License-Identifier: Apache-2.0
// A shortage of memory is never reported as a fault of the data: reading ends with an error that
// names the place, nothing is skipped and no shard is left.
#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>

#include "core/thread.h"
#include "data/prepare.h"
#include "data/record_reader.h"
#include "tests/base/outcome.h"
#include "tests/data/corpus_files.h"

namespace syntra {
namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;

int64_t AddressSpace() {
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

struct Ending {
  int code = -1;
  std::string message;
};

// Runs `body` in a child that may take `mebibytes` more than it has now; gives the error it ends
// with, code 0 if none.
Ending RunShortOfMemory(int64_t mebibytes, const std::function<void()>& body) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    SetThreadCount(1);
    malloc_trim(0);
    const rlim_t limit = AddressSpace() + mebibytes * kMebibyte;
    const rlimit limits{limit, limit};
    setrlimit(RLIMIT_AS, &limits);
    int code = 0;
    try {
      body();
    } catch (const Error& error) {
      code = static_cast<int>(error.code());
      const std::string_view message = error.what();
      if (write(ends[1], message.data(), message.size()) < 0) code = 100;
    } catch (...) {
      code = 101;
    }
    _exit(code);
  }
  close(ends[1]);
  Ending ending;
  char buffer[4096];
  for (ssize_t count; (count = read(ends[0], buffer, sizeof buffer)) > 0;) {
    ending.message.append(buffer, count);
  }
  close(ends[0]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  ending.code = CodeOfStatus(status);
  return ending;
}

class MemoryShortage : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the sanitizer needs more address space than there is memory";
#endif
  }
  // Two short documents around one of 40 MiB, for which a JSON parser takes 400 MiB more. Less
  // would fit into what malloc has set aside for other threads.
  static Path WriteCorpus(const Path& directory, const char* name, std::string_view open,
                          std::string_view close) {
    std::string content = fmt::format("{}one{}", open, close);
    content += fmt::format("{}{}{}", open, std::string(40 * kMebibyte, 'x'), close);
    content += fmt::format("{}three{}", open, close);
    return WriteScratch(directory / name, content);
  }
};

void ReadThree(const Path& path) {
  const std::unique_ptr<RecordReader> reader = OpenRecordReader(path, "text");
  int64_t good = 0;
  for (Record record; reader->Next(&record);) {
    SYNTRA_CHECK(record.fault == RecordFault::kNone, "{}", ReasonOf(record.fault));
    ++good;
  }
  SYNTRA_CHECK(good == 3);
}

TEST_F(MemoryShortage, EndsReadingWithThePlace) {
  const Path directory = ScratchDirectory("shortage");
  const Path json = WriteCorpus(directory, "a.jsonl", "{\"text\":\"", "\"}\n");
  const Ending plenty = RunShortOfMemory(1000, [&] { ReadThree(json); });
  EXPECT_EQ(plenty.code, 0) << plenty.message;
  // Enough for the line, not for its parser.
  const Ending parser = RunShortOfMemory(250, [&] { ReadThree(json); });
  EXPECT_EQ(parser.code, 4) << parser.message;
  EXPECT_EQ(parser.message,
            json.string() + ": out of memory while reading the record at byte 15, line 2");
  // Not enough for the line.
  const Ending line = RunShortOfMemory(20, [&] { ReadThree(json); });
  EXPECT_EQ(line.code, 4) << line.message;
  EXPECT_EQ(line.message,
            json.string() + ": out of memory while reading the record after byte 0, line 1");
  const Path text = WriteCorpus(directory, "a.txt", "", "\n");
  EXPECT_EQ(RunShortOfMemory(20, [&] { ReadThree(text); }).code, 4);
}

TEST_F(MemoryShortage, LeavesNoShard) {
  const Path directory = ScratchDirectory("shortage_shard");
  const Path json = WriteCorpus(directory, "a.jsonl", "{\"text\":\"", "\"}\n");
  const PrepareOptions options{.patterns = {json}, .directory = directory / "prepared"};
  const Tokenizer tokenizer(SamplePath("spiece.model"), 100);
  const Ending ending = RunShortOfMemory(250, [&] { PrepareCorpus(options, tokenizer); });
  EXPECT_EQ(ending.code, 4) << ending.message;
  EXPECT_NE(ending.message.find("preparing " + json.string()), std::string::npos) << ending.message;
  EXPECT_EQ(ListDirectory(options.directory), std::vector<Path>{});
}

// A shard that cannot be mapped now is not for that damaged, and not made again.
TEST_F(MemoryShortage, KeepsWhatCannotBeLookedAt) {
  const Path directory = ScratchDirectory("shortage_kept");
  const Path source = WriteScratch(directory / "a.txt", "x\n");
  CreateDirectories(directory / "prepared");
  // Large, but a hole.
  const Path shard = WriteScratch(directory / "prepared/a.txt.tokens", "");
  std::filesystem::resize_file(shard, 1024 * kMebibyte);
  const PrepareOptions options{.patterns = {source}, .directory = directory / "prepared"};
  const Tokenizer tokenizer(SamplePath("spiece.model"), 100);
  const Ending ending = RunShortOfMemory(100, [&] { PrepareCorpus(options, tokenizer); });
  EXPECT_EQ(ending.code, 4) << ending.message;
  EXPECT_NE(ending.message.find("cannot map " + shard.string()), std::string::npos)
      << ending.message;
  EXPECT_NE(ending.message.find("vm.max_map_count), join small ones"), std::string::npos)
      << ending.message;
  EXPECT_EQ(std::filesystem::file_size(shard), 1024 * kMebibyte);
}

// Too many open files, as too little memory, would leave a part of the corpus out in silence.
TEST_F(MemoryShortage, DirectoriesThatCannotBeListedAreErrors) {
  const Path directory = ScratchDirectory("unlistable");
  CreateDirectories(directory / "part");
  WriteScratch(directory / "part/a.txt", "x\n");
  const Ending ending = RunShortOfMemory(100, [&] {
    const rlimit none{0, 0};
    setrlimit(RLIMIT_NOFILE, &none);
    PrepareCorpus({.patterns = {(directory / "*/*.txt").string()}, .directory = directory / "out"},
                  Tokenizer(SamplePath("spiece.model"), 100));
  });
  EXPECT_EQ(ending.code, 4) << ending.message;
}

}  // namespace
}  // namespace syntra
