// SPDX-License-Identifier: Apache-2.0
#include "tests/fault/faults.h"

#include <signal.h>
#include <sys/mount.h>

#include <cmath>
#include <fstream>

#include "tests/base/small_disk.h"
#include "tests/checkpoint/crashing_disk.h"

namespace syntra {
namespace {

bool small_disks = false;

std::string Nothing() { return ""; }
std::string Mpirun() { return MpirunPath().empty() ? "mpirun" : ""; }
std::string Mounts() { return small_disks ? "" : "the right to mount"; }
std::string Strace() {
  static const bool traces = std::system("strace -o /dev/null true 2>/dev/null") == 0;
  return traces ? "" : "strace";
}
std::string FakeClock() { return std::filesystem::exists(SYNTRA_FAKETIME) ? "" : "libfaketime"; }

// --- processes that are killed, signalled, stopped ---------------------------------------------

void AllKilled(DisturbedRun& run) {
  const int ranks = run.DrawRanks();
  Program program = run.Start({.ranks = ranks});
  run.WaitForAMoment(program, ranks);
  program.Kill();
  run.ExpectNothingCommittedIsLost();
}

// Waits for the ranks, and returns their processes; none if the run ended before they were seen.
std::vector<pid_t> Ranks(const Program& program, size_t count) {
  std::vector<pid_t> ranks;
  WaitUntil([&] {
    ranks = program.RankPids();
    return ranks.size() == count || !program.running();
  });
  return ranks;
}

void RankKilled(DisturbedRun& run) {
  constexpr int kRanks = 2;
  Program program = run.Start({.ranks = kRanks});
  const std::vector<pid_t> ranks = Ranks(program, kRanks);
  run.WaitForAMoment(program, kRanks);
  if (!ranks.empty()) kill(run.Pick(ranks), SIGKILL);
  // Done before, killed, named by the ranks that are left, or a launcher that is stuck.
  run.Expect(program.Wait(), {0, 137, 7, 1000 + SIGKILL});
  run.ExpectNothingCommittedIsLost();
}

void LauncherKilled(DisturbedRun& run) {
  constexpr int kRanks = 2;
  Program program = run.Start({.ranks = kRanks});
  const std::vector<pid_t> ranks = Ranks(program, kRanks);
  run.WaitForAMoment(program, kRanks);
  program.Signal(SIGKILL);
  run.Expect(program.Wait(), {0, 1000 + SIGKILL});
  for (const pid_t rank : ranks) {
    if (!WaitUntil([&] { return !Alive(rank); })) throw Violation("a rank outlives its launcher");
  }
  run.ExpectNothingCommittedIsLost();
}

// A signal that comes before the program can handle it ends it, as any program.
void AskedToStop(DisturbedRun& run) {
  const int ranks = run.DrawRanks();
  Program program = run.Start({.ranks = ranks});
  run.WaitForAMoment(program, ranks);
  const bool began = LastLoggedStep(run.directory()) >= 0;
  int signal = run.Pick(std::to_array({SIGUSR1, SIGTERM, SIGINT, SIGHUP}));
  // What mpirun hands on to its ranks.
  if (ranks > 1) signal = SIGUSR1;
  program.Signal(signal);
  std::vector<int> codes{0, 75};
  if (!began) codes.insert(codes.end(), {1000 + signal, 128 + signal});
  const Outcome outcome = program.Wait();
  run.Expect(outcome, codes);
  if (outcome.code == 75 && began &&
      NewestStep(run.directory()) != LastLoggedStep(run.directory())) {
    throw Violation("it stopped on request without a checkpoint of its last step");
  }
}

// As a laptop's lid does, or a scheduler.
void Suspended(DisturbedRun& run) {
  const int ranks = run.DrawRanks();
  Program program = run.Start({.ranks = ranks});
  run.WaitForAMoment(program, ranks);
  std::vector<pid_t> processes = program.RankPids();
  processes.push_back(program.pid());
  for (const pid_t process : processes) kill(process, SIGSTOP);
  SleepSeconds(0.3 * static_cast<double>(run.Draw(1000)) / 1000);
  for (const pid_t process : processes) kill(process, SIGCONT);
  run.Expect(program.Wait(), {0});
}

// --- disks ------------------------------------------------------------------------------------

// Somebody else fills the disk while the run trains, and makes room again when it has ended.
void DiskFull(DisturbedRun& run) {
  const Path disk = run.base();
  if (!MountSmallDisk(disk, "size=8m")) throw Violation("cannot mount a small disk");
  CreateDirectories(run.directory());
  {
    Program program = run.Start({});
    run.WaitForAMoment(program, 1);
    const int64_t room = run.Draw(2 << 20);
    const int64_t free = static_cast<int64_t>(std::filesystem::space(disk).available);
    std::ofstream(disk / "other") << std::string(std::max<int64_t>(0, free - room), 'x');
    run.Expect(program.Wait(), {0, 4});
  }
  std::filesystem::remove(disk / "other");
  run.MetricsMayHaveGaps();
}

// A file of the newest checkpoint.
Path NewestFile(DisturbedRun& run) {
  const Path newest = run.checkpoints() / fmt::format("step-{:010}", NewestStep(run.directory()));
  std::vector<Path> files;
  for (const auto& entry : std::filesystem::directory_iterator(newest)) {
    files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return run.Pick(files);
}

// What `damage` makes of its content is what the file has from now on. The run must see it, and
// take the checkpoint before.
void Damaged(DisturbedRun& run, const std::function<void(std::string*)>& damage) {
  run.KillWithTwoCheckpoints();
  const Path file = NewestFile(run);
  std::string content = ReadWholeFile(file);
  damage(&content);
  ReplaceFileDurably(file, content);
  run.MustSay("passed over checkpoint");
}

void BitFlipped(DisturbedRun& run) {
  Damaged(run, [&](std::string* content) {
    const int64_t bit = run.Draw(static_cast<int64_t>(content->size()) * 8);
    char& byte = (*content)[bit / 8];
    byte = static_cast<char>(byte ^ (1 << bit % 8));
  });
}

void FileCut(DisturbedRun& run) {
  Damaged(run, [&](std::string* content) {
    content->resize(run.Draw(static_cast<int64_t>(content->size())));
  });
}

constexpr const char* kCalls[] = {"write",     "fsync", "rename",  "renameat2",
                                  "ftruncate", "mkdir", "unlinkat"};

// Under strace, which does `effect` to the n-th call of some name in a thread.
Outcome Injected(DisturbedRun& run, const std::string& effect) {
  const std::string name = run.Pick(kCalls);
  const int64_t ordinal = 1 + run.Draw(40);
  const std::string when = fmt::format("when={}{}", ordinal, run.Draw(4) == 0 ? "+" : "");
  return run
      .Start(
          {.wrapper = {"strace", "-f", "--seccomp-bpf", "-o", run.folder() / "trace", "-e",
                       "trace=" + name, "-e", fmt::format("inject={}:{}:{}", name, effect, when)}})
      .Wait();
}

void CallFails(DisturbedRun& run) {
  const std::string error = run.Pick(std::to_array({"ENOSPC", "EDQUOT", "EIO", "EROFS", "EACCES"}));
  run.MetricsMayHaveGaps();
  run.Expect(Injected(run, "error=" + error), {0, 4, 5});
}

void KilledInACall(DisturbedRun& run) {
  run.Expect(Injected(run, "signal=KILL"), {0, 1000 + SIGKILL});
  run.ExpectNothingCommittedIsLost();
}

// The run is recorded; then its disk is as a loss of power after a random call may leave it.
void PowerLost(DisturbedRun& run) {
  CrashingDisk disk(run.base());
  const Path trace = run.folder() / "trace";
  std::vector<std::string> wrapper{"strace", "-o", trace};
  for (const std::string& option : RecordingOptions()) wrapper.push_back(option);
  run.Expect(run.Start({.wrapper = wrapper}).Wait(), {0});
  const std::vector<RecordedCall> calls = ReadRecording(trace);
  const int64_t survived = run.Draw(static_cast<int64_t>(calls.size()) + 1);
  for (int64_t i = 0; i < survived; ++i) disk.Apply(calls[i]);
  CrashingDisk::State state;
  disk.ForEachCrash(1 + run.Draw(16), [&](const CrashingDisk::State& one) { state = one; });
  Restore(state, run.base());
  run.ExpectNothingCommittedIsLost();
}

// --- surroundings -----------------------------------------------------------------------------

// Hours and years, ahead and back, while the run trains.
void ClockJumps(DisturbedRun& run) {
  const Path offset = run.folder() / "offset";
  ReplaceFileDurably(offset, "+0");
  Program program = run.Start(
      {.environment = {"LD_PRELOAD=" SYNTRA_FAKETIME, "FAKETIME_TIMESTAMP_FILE=" + offset.string(),
                       "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1"}});
  for (int64_t jumps = 1 + run.Draw(3); jumps > 0; --jumps) {
    run.WaitForAMoment(program, 1);
    ReplaceFileDurably(offset, run.Pick(std::to_array({"+1h", "-1h", "+10y", "-10y", "-1d"})));
  }
  run.Expect(program.Wait(), {0});
}

// Too little address space, too short files, too few descriptors. The loader of programs may meet
// the limit before the program does, and says so with 127. So may a library that sets itself up: it
// aborts, with a line of the C++ library's.
void Limited(DisturbedRun& run) {
  struct Limit {
    char option;
    int64_t least, most;
  };
  const auto [option, least, most] =
      run.Pick(std::to_array<Limit>({{'v', 60000, 400000}, {'f', 1, 1500}, {'n', 4, 64}}));
  const std::string limit = std::to_string(least + run.Draw(most - least));
  const std::string command = fmt::format("ulimit -{} {} && exec \"$@\"", option, limit);
  const Outcome outcome = run.Start({.wrapper = {"bash", "-c", command, "bash"}}).Wait();
  constexpr int kAborted = 1006;
  const bool before_main = outcome.err.starts_with("terminate called") && !outcome.Says("crash");
  run.Expect(outcome, before_main ? std::vector{kAborted} : std::vector{0, 4, 127});
  run.MetricsMayHaveGaps();
}

// One request for memory is refused, or all from it on.
void MemoryRefused(DisturbedRun& run) {
  // As many small numbers as large ones: most of a start's requests are its first.
  const double most = std::log(200000.0);
  const auto request =
      static_cast<int64_t>(std::exp(most * static_cast<double>(run.Draw(10000)) / 10000));
  StartOptions options{.environment = {"LD_PRELOAD=" SYNTRA_FAILING_MALLOC,
                                       "FAIL_MALLOC=" + std::to_string(request)}};
  if (run.Draw(2) == 0) options.environment.push_back("FAIL_MALLOC_ONCE=1");
  run.MetricsMayHaveGaps();
  run.Expect(run.Start(options).Wait(), {0, 4});
}

constexpr Fault kFaults[] = {
    {"all_killed", AllKilled, Nothing},
    {"asked_to_stop", AskedToStop, Nothing},
    {"bit_flipped", BitFlipped, Nothing},
    {"call_fails", CallFails, Strace},
    {"clock_jumps", ClockJumps, FakeClock},
    {"disk_full", DiskFull, Mounts},
    {"file_cut", FileCut, Nothing},
    {"killed_in_a_call", KilledInACall, Strace},
    {"launcher_killed", LauncherKilled, Mpirun},
    {"limited", Limited, Nothing},
    {"memory_refused", MemoryRefused, Nothing},
    {"power_lost", PowerLost, Strace},
    {"rank_killed", RankKilled, Mpirun},
    {"suspended", Suspended, Nothing},
};

}  // namespace

std::span<const Fault> Faults() { return kFaults; }

void AllowSmallDisks() { small_disks = MayMount(); }

}  // namespace syntra
