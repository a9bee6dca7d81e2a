// SPDX-License-Identifier: Apache-2.0
// syntra bench: times whole training steps on random tokens, then one op by op.
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <fstream>
#include <iostream>
#include <map>
#include <numeric>

#include "base/clock.h"
#include "base/json.h"
#include "base/median.h"
#include "base/memory_limits.h"
#include "base/output.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/run_config.h"
#include "cli/step_bench.h"
#include "core/thread.h"
#include "train/threads.h"

namespace syntra {
namespace {

// Seconds since the kernel made this process, to its clock tick; 0 where it does not say.
double SecondsSinceProcessStart() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return 0;
  // The fields after the name begin with the third; the start is the 22nd.
  const std::vector<std::string> fields = Split(line.substr(name_end + 2), ' ');
  int64_t ticks = 0;
  timespec now;
  if (fields.size() < 20 || !ParseInt64(fields[19], &ticks) ||
      clock_gettime(CLOCK_BOOTTIME, &now) != 0) {
    return 0;
  }
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec) -
         static_cast<double>(ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

void PrintShares(const std::vector<std::pair<std::string, double>>& rows) {
  double total = 0;
  for (const auto& row : rows) total += row.second;
  for (const auto& [name, seconds] : rows) {
    fmt::print("  {:28} {:9.2f} ms {:5.1f}%\n", name, 1e3 * seconds, 100 * seconds / total);
  }
}

// Seconds of the phases of one step, and of the ops of forward and backward.
struct StepParts {
  std::array<double, 2> phases;
  std::map<std::string, double> ops;

  explicit StepParts(StepBench& bench) : phases(bench.Step(true)) {
    RunTimes times;
    bench.Training().Run(Gradients::kReplace, {}, &times);  // as in the step, so that it is loaded
    bench.device().Wait();
    ops = SecondsByOp(times);
  }
};

void Print(const StepParts& parts) {
  std::vector<std::pair<std::string, double>> rows;
  for (size_t i = 0; i < parts.phases.size(); ++i) {
    rows.emplace_back(StepBench::kPhases[i], parts.phases[i]);
  }
  fmt::print("phases of one step:\n");
  PrintShares(rows);
  rows.assign(parts.ops.begin(), parts.ops.end());
  std::ranges::sort(rows, std::greater<>(), &std::pair<std::string, double>::second);
  fmt::print("ops of forward and backward:\n");
  PrintShares(rows);
}

double Total(const std::array<double, 2>& phases) {
  return std::accumulate(phases.begin(), phases.end(), 0.0);
}

void PrintLine(const Json& json) {
  fmt::print("{}\n", JsonText(json));
  FlushOutput();
}

}  // namespace

Action SetUpBench(CLI::App& app) {
  const auto options = AddConfigOptions(app);
  struct Form {
    int steps = 5;
    bool ops = false, json = false, wait_for_line = false;
  };
  const auto form = std::make_shared<Form>();
  auto* steps =
      app.add_option("--steps", form->steps, "Number of steps to time, after one warm-up step")
          ->check(CLI::Range(1, 100000))
          ->capture_default_str();
  auto* ops = app.add_flag("--ops", form->ops, "Also time one step op by op");
  app.add_flag("--json", form->json, "Print JSON, one object per line");
  app.add_flag("--wait-for-line", form->wait_for_line,
               "Time a step for each line of standard input and print it as JSON")
      ->excludes(steps)
      ->excludes(ops);
  return [options, form] {
    const Config config = LoadForModel(*options);
    ChooseThreads(config.train());
    StepBench bench(config);
    bench.Step();
    const double to_first_step = SecondsSinceProcessStart();
    const double peak = bench.PeakFlops();
    const bool json = form->json || form->wait_for_line;
    if (json) {
      PrintLine({{"ready", true},
                 {"seconds_to_first_step", to_first_step},
                 {"threads", ThreadCount()},
                 {"parameters", bench.parameters()},
                 {"flops", bench.flops()}});
    } else {
      fmt::print("first step done {:.3f} s after the process began\n", to_first_step);
    }
    std::vector<double> seconds;
    std::string line;
    const auto more = [&] {
      return form->wait_for_line ? static_cast<bool>(std::getline(std::cin, line))
                                 : static_cast<int>(seconds.size()) < form->steps;
    };
    while (more()) {
      seconds.push_back(Total(bench.Step()));
      if (form->wait_for_line) PrintLine({{"seconds", seconds.back()}});
    }
    const double median = seconds.empty() ? NAN : Median(seconds);
    const double best = seconds.empty() ? NAN : *std::ranges::min_element(seconds);
    if (json) {
      Json last = {{"median", median},
                   {"best", best},
                   {"seconds", seconds},
                   {"flops", bench.flops()},
                   {"mfu", bench.flops() / (median * peak)},
                   {"peak_resident_bytes", PeakResidentBytes()},
                   {"device", bench.device().name()},
                   {"peak_device_bytes", bench.device().peak_bytes()}};
      if (form->ops) {
        const StepParts parts(bench);
        for (size_t i = 0; i < parts.phases.size(); ++i) {
          last["phases"][StepBench::kPhases[i]] = parts.phases[i];
        }
        last["ops"] = parts.ops;
      }
      PrintLine(last);
      return ExitCode::kDone;
    }
    fmt::print(
        "step {:.4f} s (best {:.4f}), {}, {} FLOPs, {} FLOP/s{}, {:.0f} input tokens/s, "
        "peak memory {}\n",
        median, best, Counted(ThreadCount(), "thread"), HumanCount(bench.flops()),
        HumanCount(bench.flops() / median),
        std::isnan(peak) ? ""
                         : fmt::format(" (MFU {:.1f}%)", 100 * bench.flops() / (median * peak)),
        static_cast<double>(bench.input_tokens()) / median,
        HumanBytes(static_cast<double>(PeakResidentBytes())));
    if (form->ops) Print(StepParts(bench));
    return ExitCode::kDone;
  };
}

}  // namespace syntra
