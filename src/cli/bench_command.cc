// SPDX-License-Identifier: Apache-2.0
// syntra bench: times whole training steps on random tokens, then one op by op.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <iostream>
#include <numeric>

#include "base/clock.h"
#include "base/host.h"
#include "base/json.h"
#include "base/median.h"
#include "base/memory_limits.h"
#include "base/output.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/run_config.h"
#include "cli/step_bench.h"
#include "core/thread.h"
#include "plan/op_work.h"
#include "train/threads.h"

namespace syntra {
namespace {

// Seconds since the kernel made this process, to its clock tick; 0 where it does not say.
double SecondsSinceProcessStart() {
  const std::string line = KernelFile("/proc/self/stat");
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return 0;
  // The fields after the name begin with the third; the start is the 22nd.
  const std::vector<std::string> fields = Split(line.substr(name_end + 2), ' ');
  int64_t ticks = 0;
  if (fields.size() < 20 || !ParseInt64(fields[19], &ticks)) return 0;
  return SecondsOf(CLOCK_BOOTTIME) -
         static_cast<double>(ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double Total(const std::array<double, 2>& phases) {
  return std::accumulate(phases.begin(), phases.end(), 0.0);
}

// Seconds of the phases of one step, and the ops of forward and backward.
struct StepParts {
  std::array<double, 2> phases;
  std::vector<OpWork> ops;

  StepParts(StepBench& bench, bool by_operands) : phases(bench.Step(true)) {
    RunTimes times;
    bench.Training().Run(Gradients::kReplace, {}, &times);  // as in the step, so that it is loaded
    bench.device().Wait();
    ops = OpsOfRun(times, by_operands);
  }
};

void PrintPhases(const std::array<double, 2>& seconds) {
  fmt::print("phases of one step:\n");
  for (size_t i = 0; i < seconds.size(); ++i) {
    fmt::print("  {:28} {:9.2f} ms {:5.1f}%\n", StepBench::kPhases[i], 1e3 * seconds[i],
               100 * seconds[i] / Total(seconds));
  }
}

// "-" where the op computes no products.
void PrintOps(const std::vector<OpWork>& ops, double peak) {
  double total = 0;
  for (const OpWork& op : ops) total += op.seconds;
  fmt::print("{:28} {:>6} {:>9} {:>6} {:>8} {:>7} {:>7}\n", "ops of forward and backward", "calls",
             "ms", "share", "FLOP/s", "of peak", "GB/s");
  for (const OpWork& op : ops) {
    const double speed = op.flops / op.seconds;
    const bool multiplies = op.flops > 0;
    fmt::print("{:28} {:6} {:9.2f} {:5.1f}% {:>8} {:>7} {:7.1f}{}{}\n", op.op, op.calls,
               1e3 * op.seconds, 100 * op.seconds / total, multiplies ? HumanCount(speed) : "-",
               multiplies && !std::isnan(peak) ? fmt::format("{:.1f}%", 100 * speed / peak) : "-",
               1e-9 * op.bytes / op.seconds, op.operands.empty() ? "" : "  ", op.operands);
  }
}

Json JsonOf(const std::vector<OpWork>& ops) {
  Json list = Json::array();
  for (const OpWork& op : ops) {
    list.push_back({{"op", op.op},
                    {"calls", op.calls},
                    {"seconds", op.seconds},
                    {"flops", op.flops},
                    {"bytes", op.bytes}});
    if (!op.operands.empty()) list.back()["operands"] = op.operands;
  }
  return list;
}

void PrintLine(const Json& json) {
  fmt::print("{}\n", JsonText(json));
  FlushOutput();
}

struct BenchOptions {
  int steps = 5;
  bool ops = false, by_operands = false, json = false, wait_for_line = false;
};

void PrintReady(StepBench& bench, bool json) {
  const double to_first_step = SecondsSinceProcessStart();
  if (json) {
    PrintLine({{"ready", true},
               {"seconds_to_first_step", to_first_step},
               {"threads", ThreadCount()},
               {"parameters", bench.parameters()},
               {"flops", bench.flops()}});
  } else {
    fmt::print("first step done {:.3f} s after the process began\n", to_first_step);
  }
}

// Seconds of each step: of so many as the options say, or of one for each line of standard input.
std::vector<double> TimeSteps(StepBench& bench, const BenchOptions& options) {
  std::vector<double> seconds;
  if (options.wait_for_line) {
    for (std::string line; std::getline(std::cin, line);) {
      seconds.push_back(Total(bench.Step()));
      PrintLine({{"seconds", seconds.back()}});
    }
    return seconds;
  }
  for (int i = 0; i < options.steps; ++i) seconds.push_back(Total(bench.Step()));
  return seconds;
}

// What the steps took: all of them, their median and the fastest.
struct StepTimes {
  std::vector<double> seconds;
  double median, best;

  explicit StepTimes(std::vector<double> all)
      : seconds(std::move(all)),
        median(seconds.empty() ? NAN : Median(seconds)),
        best(seconds.empty() ? NAN : *std::ranges::min_element(seconds)) {}
};

void PrintJson(StepBench& bench, const StepTimes& times, double peak, const BenchOptions& options) {
  Json last = {{"median", times.median},
               {"best", times.best},
               {"seconds", times.seconds},
               {"flops", bench.flops()},
               {"mfu", bench.flops() / (times.median * peak)},
               {"peak_resident_bytes", PeakResidentBytes()},
               {"device", bench.device().name()},
               {"peak_device_bytes", bench.device().peak_bytes()}};
  if (options.ops) {
    const StepParts parts(bench, options.by_operands);
    for (size_t i = 0; i < parts.phases.size(); ++i) {
      last["phases"][StepBench::kPhases[i]] = parts.phases[i];
    }
    last["ops"] = JsonOf(parts.ops);
  }
  PrintLine(last);
}

void PrintText(StepBench& bench, const StepTimes& times, double peak, const BenchOptions& options) {
  const double speed = bench.flops() / times.median;
  fmt::print(
      "step {:.4f} s (best {:.4f}), {}, {} FLOPs, {}{}, {:.0f} input tokens/s, "
      "peak memory {}\n",
      times.median, times.best, Counted(ThreadCount(), "thread"), HumanCount(bench.flops()),
      HumanFlops(speed), std::isnan(peak) ? "" : fmt::format(" (MFU {:.1f}%)", 100 * speed / peak),
      static_cast<double>(bench.input_tokens()) / times.median,
      HumanBytes(static_cast<double>(PeakResidentBytes())));
  if (!options.ops) return;
  const StepParts parts(bench, options.by_operands);
  PrintPhases(parts.phases);
  PrintOps(parts.ops, peak);
}

}  // namespace

Action SetUpBench(CLI::App& app) {
  const auto model = AddModelOptions(app);
  const auto options = std::make_shared<BenchOptions>();
  auto* steps =
      app.add_option("--steps", options->steps, "Number of steps to time, after one warm-up step")
          ->check(CLI::Range(1, 100000))
          ->capture_default_str();
  auto* ops = app.add_flag("--ops", options->ops, "Also time one step op by op");
  app.add_flag("--by-operands", options->by_operands,
               "With --ops: tell calls of an op with operands of other shapes or types apart")
      ->needs(ops);
  app.add_flag("--json", options->json, "Print JSON, one object per line");
  app.add_flag("--wait-for-line", options->wait_for_line,
               "Time a step for each line of standard input and print it as JSON")
      ->excludes(steps)
      ->excludes(ops);
  return [model, options] {
    const Config config = LoadForModel(*model);
    ChooseThreads(config.train());
    StepBench bench(config);
    bench.Step();
    const bool json = options->json || options->wait_for_line;
    PrintReady(bench, json);
    const double peak = bench.PeakFlops();
    const StepTimes times(TimeSteps(bench, *options));
    (json ? PrintJson : PrintText)(bench, times, peak, *options);
    return ExitCode::kDone;
  };
}

}  // namespace syntra
