// SPDX-License-Identifier: Apache-2.0
// Cycle after cycle a tiny run is disturbed by one fault, goes on, and must end with the bits of a
// run that was not disturbed, with nothing left behind.
//
//   soak --cycles 2000 --seed 1 --result soak.json
//
// Every fault comes as often as the others, in an order that follows from the seed. A violation
// prints the command that repeats its cycle; its directory stays. Exit codes: 0, 1 after
// violations, 2 for a wrong command line.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <optional>

#include "base/clock.h"
#include "base/host.h"
#include "base/text.h"
#include "base/version.h"
#include "tests/fault/faults.h"

namespace syntra {
namespace {

struct Options {
  int64_t cycles = 100, first = 0;
  uint32_t seed = 1;
  std::vector<std::string> faults;  // empty: all that can happen here
  Path scratch, result;
};

struct Tally {
  int64_t cycles = 0;
  std::map<int, int> codes;  // of the disturbed programs
};

volatile sig_atomic_t interrupted = 0;

std::string ProcessorName() {
  std::string name = "unknown";
  for (const std::string& line : Split(KernelFile("/proc/cpuinfo"), '\n')) {
    if (line.starts_with("model name")) name = StripSpace(line.substr(line.find(':') + 1));
  }
  return name;
}

class Soak {
 public:
  explicit Soak(const Options& options)
      : options_(options), files_(options.scratch), undisturbed_(files_, options.scratch) {
    for (const Fault& fault : Faults()) {
      const auto& asked = options.faults;
      if (!asked.empty() && std::ranges::find(asked, fault.name) == asked.end()) continue;
      const std::string missing = fault.missing();
      if (missing.empty()) {
        faults_.push_back(&fault);
      } else {
        fmt::print(stderr, "{} is left out: this machine lacks {}\n", fault.name, missing);
        left_out_.push_back(fault.name);
      }
    }
  }

  // Whether there were no violations.
  bool Run() {
    for (int64_t i = 0; i < options_.cycles && !faults_.empty() && !interrupted; ++i) {
      Cycle(options_.first + i);
      Report(i + 1);
    }
    if (!options_.result.empty()) ReplaceFileDurably(options_.result, JsonText(Result(), 1) + "\n");
    return violations_.empty();
  }

 private:
  // All faults in turn, each time in another order.
  const Fault& FaultOf(int64_t cycle) const {
    const auto count = static_cast<int64_t>(faults_.size());
    std::seed_seq seeds{int64_t{options_.seed}, cycle / count};
    std::mt19937 random(seeds);
    std::vector<const Fault*> turn = faults_;
    std::ranges::shuffle(turn, random);
    return *turn[cycle % count];
  }

  void Cycle(int64_t cycle) {
    const Fault& fault = FaultOf(cycle);
    const Path folder = options_.scratch / fmt::format("cycle-{}", cycle);
    std::seed_seq seeds{int64_t{options_.seed}, cycle, int64_t{-1}};
    uint32_t seed = 0;
    seeds.generate(&seed, &seed + 1);
    ++tallies_[fault.name].cycles;
    if (Happens(cycle, fault, folder, seed)) RemoveAll(folder);
  }

  // Whether nothing was violated. When it returns, nothing uses the folder.
  bool Happens(int64_t cycle, const Fault& fault, const Path& folder, uint32_t seed) {
    DisturbedRun run(files_, folder, undisturbed_, seed);
    std::optional<std::string> violation;
    try {
      fault.happen(run);
      run.Finish();
    } catch (const std::exception& error) {
      violation = error.what();
    }
    for (const auto& [code, count] : run.codes()) tallies_[fault.name].codes[code] += count;
    if (violation) NoteViolation(cycle, fault, folder, *violation);
    return !violation;
  }

  void NoteViolation(int64_t cycle, const Fault& fault, const Path& folder,
                     const std::string& what) {
    std::string only;
    if (!options_.faults.empty())
      only = fmt::format(" --faults {}", fmt::join(options_.faults, ","));
    const std::string command =
        fmt::format("soak --seed {} --first {} --cycles 1{}", options_.seed, cycle, only);
    fmt::print(stderr, "\ncycle {}, {}: {}\nits files: {}\nonce more: {}\n", cycle, fault.name,
               what, folder.string(), command);
    violations_.push_back(
        {{"cycle", cycle}, {"fault", fault.name}, {"what", what}, {"command", command}});
  }

  void Report(int64_t done) {
    const double seconds = SecondsSince(start_);
    if (done < options_.cycles && seconds < reported_ + 10) return;
    reported_ = seconds;
    const double rate = static_cast<double>(done) / seconds;
    fmt::print(stderr, "{} of {} cycles, {:.2f} a second, {} left, {} violations\n",
               WithThousands(done), WithThousands(options_.cycles), rate,
               HumanDuration(static_cast<double>(options_.cycles - done) / rate),
               violations_.size());
  }

  Json Result() const {
    Json faults = Json::object();
    int64_t cycles = 0;
    for (const auto& [name, tally] : tallies_) {
      Json codes = Json::object();
      for (const auto& [code, count] : tally.codes) codes[std::to_string(code)] = count;
      faults[name] = {{"cycles", tally.cycles}, {"exit_codes", codes}};
      cycles += tally.cycles;
    }
    return {{"date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
            {"processor", ProcessorName()},
            {"cores", sysconf(_SC_NPROCESSORS_ONLN)},
            {"version", Version()},
            {"seed", options_.seed},
            {"first", options_.first},
            {"cycles", cycles},
            {"seconds", std::round(SecondsSince(start_))},
            {"violations", violations_},
            {"left_out", left_out_},
            {"faults", faults}};
  }

  const Options& options_;
  const TinyFiles files_;
  const Undisturbed undisturbed_;
  std::vector<const Fault*> faults_;
  std::vector<std::string> left_out_;
  std::map<std::string, Tally> tallies_;
  Json violations_ = Json::array();
  const Clock::time_point start_ = Clock::now();
  double reported_ = 0;
};

std::vector<std::string> FaultNames() {
  std::vector<std::string> names;
  for (const Fault& fault : Faults()) names.push_back(fault.name);
  return names;
}

int Main(int argc, char** argv) {
  Options options;
  options.scratch = fmt::format("{}/syntra-soak-{}",
                                access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", getpid());
  CLI::App app("Disturbs tiny runs, one fault a cycle, and compares what becomes of them.", "soak");
  app.add_option("--cycles", options.cycles, "Cycles to make")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seed", options.seed, "What all choices follow from")->capture_default_str();
  app.add_option("--first", options.first, "Number of the first cycle")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--faults", options.faults, "Only these: " + Join(FaultNames(), ","))
      ->delimiter(',')
      ->check(CLI::IsMember(FaultNames()));
  app.add_option("--result", options.result, "A JSON file for counts and violations");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  AllowSmallDisks();
  signal(SIGINT, [](int) { interrupted = 1; });
  signal(SIGTERM, [](int) { interrupted = 1; });
  CreateDirectories(options.scratch);
  const bool good = Soak(options).Run();
  if (good) RemoveAll(options.scratch);
  return good ? 0 : 1;
}

}  // namespace
}  // namespace syntra

int main(int argc, char** argv) {
  // The expectations of the helpers that tests share become exceptions.
  int count = 1;
  testing::InitGoogleTest(&count, argv);
  GTEST_FLAG_SET(throw_on_failure, true);
  try {
    return syntra::Main(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "soak: {}\n", error.what());
    return 1;
  }
}
