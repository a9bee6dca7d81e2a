// SPDX-License-Identifier: Apache-2.0
// A corpus that several processes prepare: together, one after another's death, or with less
// permission.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/thread.h"
#include "data/prepare.h"
#include "data/shard_claim.h"
#include "tests/base/captured_log.h"
#include "tests/data/prepared_corpus.h"
#include "tests/data/sample_data.h"

namespace syntra {
namespace {

// Prepares in a child process; exits with the number of shards it made, or 100.
pid_t PrepareInChild(const PrepareOptions& options) {
  const pid_t child = fork();
  if (child == 0) {
    // The pool's threads do not follow into a child.
    SetThreadCount(1);
    int code = 100;
    try {
      code = static_cast<int>(PrepareCorpus(options, T5()).built);
    } catch (...) {
    }
    _exit(code);
  }
  return child;
}

int ExitCodeOf(pid_t child) {
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

TEST(Prepare, ProcessesShareTheWork) {
  T5();
  const PrepareOptions alone = OptionsFor(WriteCorpus("alone", 8));
  PrepareCorpus(alone, T5());
  for (int repeat = 0; repeat < 5; ++repeat) {
    const PrepareOptions options = OptionsFor(WriteCorpus("together", 8));
    const pid_t first = PrepareInChild(options), second = PrepareInChild(options),
                third = PrepareInChild(options);
    EXPECT_EQ(ExitCodeOf(first) + ExitCodeOf(second) + ExitCodeOf(third), 8);
    EXPECT_EQ(PrepareCorpus(options, T5()).kept, 8);
    for (const auto& entry : std::filesystem::directory_iterator(alone.directory)) {
      if (entry.path().extension() != ".tokens") continue;
      EXPECT_EQ(ReadWholeFile(entry), ReadWholeFile(options.directory / entry.path().filename()));
    }
    int files = 0;
    for ([[maybe_unused]] const auto& entry :
         std::filesystem::directory_iterator(options.directory)) {
      ++files;
    }
    EXPECT_EQ(files, 9);  // 8 shards and the index: no lock, no temporary file
  }
}

// What another process has made meanwhile is not read once more, unless its source has changed.
TEST(Prepare, WhatAnotherProcessHasJustMadeIsTaken) {
  T5();
  for (const bool changes : {false, true}) {
    const Path corpus = WriteCorpus("made_meanwhile", 2);
    const Path second = corpus / "c-00001-of-00002.json.gz";
    const auto before = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
    for (const auto& file : std::filesystem::directory_iterator(corpus)) {
      std::filesystem::last_write_time(file, before);
    }
    PrepareOptions options = OptionsFor(corpus), other = options;
    other.patterns = {second.string()};
    int64_t compared = 0;
    options.on_progress = [&](const PrepareProgress& progress) {
      compared = progress.compared_blocks;
      if (progress.shards_done != 1 || Exists(options.directory / kCorpusIndexName)) return;
      EXPECT_EQ(ExitCodeOf(PrepareInChild(other)), 1);
      if (changes) WriteScratch(second, Gzip("{\"text\":\"new words\"}\n"));
    };
    const PrepareResult result = PrepareCorpus(options, T5());
    EXPECT_EQ(result.built, changes ? 2 : 1);
    EXPECT_EQ(result.index.documents(), changes ? 41 : 80);
    // Of each file that is made: once. Of the other's shard besides, where it is not believed.
    EXPECT_EQ(compared, changes ? 3 : 1);
    EXPECT_EQ(PrepareCorpus(OptionsFor(corpus), T5()).built, 0);
  }
}

// Whoever may only read what another user has prepared can use it.
TEST(Prepare, FinishedShardsNeedNoPermissionToWrite) {
  T5();
  const PrepareOptions options = OptionsFor(WriteCorpus("read_only", 2));
  PrepareCorpus(options, T5());  // whose files are too young for the index
  std::filesystem::permissions(options.directory, std::filesystem::perms(0555));
  const pid_t child = fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    SetThreadCount(1);
    if (geteuid() == 0 && setresuid(kNobody, kNobody, kNobody) != 0) _exit(101);
    int code = 100;
    try {
      const PrepareResult result = PrepareCorpus(options, T5());
      code = static_cast<int>(10 * result.built + result.kept);
    } catch (const Error& error) {
      fmt::print(stderr, "{}\n", error.what());
    }
    _exit(code);
  }
  EXPECT_EQ(ExitCodeOf(child), 2);
  std::filesystem::permissions(options.directory, std::filesystem::perms(0755));
}

// However long it takes to compare a large file with its shard, it shows that it goes on.
TEST(Prepare, ComparingIsProgress) {
  PrepareOptions options = OptionsFor(WriteCorpus("comparing", 1));
  PrepareCorpus(options, T5());
  std::vector<int64_t> compared;
  options.on_progress = [&](const PrepareProgress& progress) {
    compared.push_back(progress.compared_blocks);
  };
  EXPECT_EQ(PrepareCorpus(options, T5()).kept, 1);
  EXPECT_EQ(compared, (std::vector<int64_t>{1, 2, 2}));  // the source, the shard, the end
}

// All ranks of a job can compare a shard at once.
TEST(Prepare, ComparingNeedsNoClaim) {
  PrepareOptions options = OptionsFor(WriteCorpus("compare_claimed", 1));
  PrepareCorpus(options, T5());  // whose files are too young for the index
  const auto claim = ShardClaim::Try(options.directory / "c-00000-of-00001.json.gz.tokens");
  ASSERT_TRUE(claim);
  struct Waits {};
  int calls = 0;
  options.on_progress = [&](const PrepareProgress&) {
    if (++calls == 100) throw Waits();
  };
  EXPECT_EQ(PrepareCorpus(options, T5()).kept, 1);
}

// A process that waits for another's shard can tell whether that one still works.
TEST(Prepare, WaitingShowsThatTheHolderWorks) {
  const Path corpus = WriteCorpus("prepare-holder", 1);
  PrepareOptions options = OptionsFor(corpus);
  CreateDirectories(options.directory);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto claim = ShardClaim::Try(options.directory / "c-00000-of-00001.json.gz.tokens");
    if (write(ends[1], "r", 1) != 1) _exit(1);
    while (true) {
      usleep(100000);
      claim->Touch();
    }
  }
  char byte;
  ASSERT_EQ(read(ends[0], &byte, 1), 1);
  struct Enough {};
  std::vector<PrepareProgress> seen;
  int calls = 0;
  options.on_progress = [&](const PrepareProgress& progress) {
    if (seen.empty() || seen.back() != progress) seen.push_back(progress);
    if (seen.size() == 2 || ++calls == 1000) throw Enough();
  };
  EXPECT_THROW(PrepareCorpus(options, T5()), Enough);
  // As it was claimed, and touched.
  EXPECT_EQ(seen.size(), 2u);
  // One that is suspended is named, since it must be ended by hand.
  kill(child, SIGSTOP);
  const Path lock = options.directory / "c-00000-of-00001.json.gz.tokens.lock";
  std::filesystem::last_write_time(
      lock, std::filesystem::file_time_type::clock::now() - std::chrono::minutes(3));
  const CapturedLog log;
  options.on_progress = [&](const PrepareProgress&) {
    if (!log.Warnings().empty()) throw Enough();
  };
  EXPECT_THROW(PrepareCorpus(options, T5()), Enough);
  EXPECT_THAT(log.Warnings().front(),
              testing::StartsWith(fmt::format(
                  "waiting for c-00000-of-00001.json.gz.tokens, which process {} on ", child)));
  EXPECT_THAT(log.Warnings().front(), testing::HasSubstr(" has claimed but not worked on for 3m"));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ends[0]);
  close(ends[1]);
}

TEST(Prepare, GoesOnAfterAKill) {
  T5();
  for (const int64_t survived : {0, 1, 3}) {
    PrepareOptions options = OptionsFor(WriteCorpus("killed", 4));
    PrepareOptions fatal = options;
    fatal.on_progress = [&](const PrepareProgress& progress) {
      if (progress.shards_done > survived) kill(getpid(), SIGKILL);
    };
    const pid_t child = PrepareInChild(fatal);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_FALSE(std::filesystem::exists(options.directory / "INDEX.json"));
    const PrepareResult result = PrepareCorpus(options, T5());
    EXPECT_EQ(result.kept, survived + 1);
    EXPECT_EQ(result.built, 4 - survived - 1);
  }
}

// Killed in the middle of a shard: its temporary file is cleared away and its claim is free.
TEST(Prepare, GoesOnAfterAKillInsideAShard) {
  T5();
  const Path corpus = WriteCorpus("killed_inside", 1);
  std::string text;
  for (int i = 0; i < 2500; ++i) text += "{\"text\":\"some words\"}\n";
  WriteScratch(corpus / "c-00000-of-00001.json.gz", Gzip(text));
  const PrepareOptions options = OptionsFor(corpus);
  PrepareOptions fatal = options;
  fatal.on_progress = [&](const PrepareProgress& progress) {
    if (progress.documents > 0) kill(getpid(), SIGKILL);
  };
  const pid_t child = PrepareInChild(fatal);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  int temporary = 0;
  for (const auto& entry : std::filesystem::directory_iterator(options.directory)) {
    temporary += entry.path().string().find(".tmp-") != std::string::npos;
  }
  EXPECT_EQ(temporary, 1);
  EXPECT_EQ(PrepareCorpus(options, T5()).built, 1);
  for (const auto& entry : std::filesystem::directory_iterator(options.directory)) {
    EXPECT_EQ(entry.path().string().find(".tmp-"), std::string::npos);
    EXPECT_EQ(entry.path().string().find(".lock"), std::string::npos);
  }
}

// Without a claim that was left with it, a temporary file may be one that is being written.
TEST(Prepare, ClearsAwayOnlyWhatAnEndedHolderHasLeft) {
  T5();
  const PrepareOptions options = OptionsFor(WriteCorpus("left", 1));
  const std::string shard = options.directory / "c-00000-of-00001.json.gz.tokens";
  CreateDirectories(options.directory);
  for (const bool is_claimed : {false, true}) {
    const Path temporary = WriteScratch(shard + ".tmp-7", "half");
    const Path aside = WriteScratch(shard + ".again.tmp-8", "half");
    if (is_claimed) WriteScratch(shard + ".lock", "{}\n");
    EXPECT_EQ(PrepareCorpus(options, T5()).built, 1);
    EXPECT_EQ(Exists(temporary), !is_claimed);
    EXPECT_EQ(Exists(aside), !is_claimed);
    std::filesystem::remove(shard);
  }
}

}  // namespace
}  // namespace syntra
