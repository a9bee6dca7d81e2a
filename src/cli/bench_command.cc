// SPDX-License-Identifier: Apache-2.0
// syntra bench: times whole training steps on random tokens, then one op by op.
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <fstream>
#include <iostream>
#include <numeric>

#include "base/clock.h"
#include "base/json.h"
#include "base/output.h"
#include "base/text.h"
#include "cli/backend.h"
#include "cli/commands.h"
#include "cli/config_options.h"
#include "core/random.h"
#include "core/thread.h"
#include "data/example.h"
#include "train/replica.h"
#include "train/step.h"

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

int64_t PeakResidentBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{1024} * usage.ru_maxrss;
}

// A full batch of random tokens: shapes and costs of training, no corpus needed.
Batch RandomBatch(const Config& config) {
  const ExampleLengths row = RowSlots(config);
  Batch batch(BatchPartition::Of(config.train(), 1).micro_batch_rows, row.inputs, row.targets);
  uint64_t counter = 0;
  for (const char* name : {"encoder_ids", "decoder_ids", "targets"}) {
    if (!batch.tensors().contains(name)) continue;
    for (int32_t& id : batch[name]) {
      const uint32_t bits = RandomAt({1, 2}, counter++)[0];
      id = 2 + static_cast<int32_t>(UniformBelow(bits, config.model().vocabulary_size() - 2));
    }
  }
  for (const char* name : {"encoder_segments", "decoder_segments"}) {
    if (batch.tensors().contains(name)) std::ranges::fill(batch[name], 1);
  }
  batch.target_tokens = std::ssize(batch["targets"]);
  return batch;
}

// One replica and one batch, stepped again and again.
class Bench {
 public:
  explicit Bench(const Config& config)
      : activations_(ActivationType(config.train().precision())),
        backend_(ChooseBackend(config.train().device(), nullptr)),
        begin_(device().MakeEvent()),
        end_(device().MakeEvent()),
        replica_(TrainingPlan::Of(config, 1, device()), 0, *backend_),
        batch_(RandomBatch(config)) {
    replica_.InitializeParameters(config.train().seed());
  }

  // Runs one step and returns the seconds of its phases, in order. On a GPU the first phase only
  // enqueues, so that the GPU does not pause; with `apart` it waits, so that the phases can be told
  // apart.
  std::array<double, 2> Step(bool apart = false) {
    const int64_t index = next_++;
    begin_->Record();
    std::array<double, 2> seconds;
    const auto timed = [&](size_t phase, auto&& run) {
      const auto start = Clock::now();
      run();
      seconds[phase] = SecondsSince(start);
    };
    timed(0, [&] {
      replica_.Differentiate(batch_, FactsOf(index), Gradients::kReplace);
      if (apart) backend_->device().Wait();
    });
    timed(1, [&] {
      replica_.Update({.step = index, .rate = 1e-4});
      end_->Record();
      backend_->device().Wait();
    });
    return seconds;
  }
  static constexpr const char* kPhases[] = {"forward and backward", "update"};

  // Of the last step: from its first work on the device to its last.
  double device_seconds() const { return end_->SecondsSince(*begin_); }
  Device& device() { return backend_->device(); }

  Executable& Training() {
    return replica_.Training({batch_.rows, batch_.input_length, batch_.target_length});
  }
  double PeakFlops() { return backend_->PeakFlops(activations_); }
  double flops() { return Training().program().model_flops(); }
  int64_t parameters() const { return replica_.parameters().element_count(); }
  // Where inputs and targets share a row, of both.
  int64_t input_tokens() const {
    return batch_.rows * (batch_.input_length > 0 ? batch_.input_length : batch_.target_length);
  }

 private:
  BatchFacts FactsOf(int64_t step) const {
    const auto inverse = [](int64_t count) { return 1.0 / static_cast<double>(count); };
    BatchFacts facts{.seed = 1,
                     .step = step,
                     .inverse_denominator = inverse(batch_.target_tokens),
                     .inverse_positions = {}};
    const Model& model = replica_.model();
    for (const Side side : model.architecture().sides()) {
      if (model.stack(side).ponders()) {
        facts.inverse_positions[side] = inverse(PositionsOf(batch_, side));
      }
    }
    return facts;
  }

  DType activations_;
  std::shared_ptr<Backend> backend_;
  std::unique_ptr<Device::Event> begin_, end_;
  Replica replica_;
  Batch batch_;
  int64_t next_ = 0;
};

void PrintShares(const std::vector<std::pair<std::string, double>>& rows) {
  double total = 0;
  for (const auto& row : rows) total += row.second;
  for (const auto& [name, seconds] : rows) {
    fmt::print("  {:28} {:9.2f} ms {:5.1f}%\n", name, 1e3 * seconds, 100 * seconds / total);
  }
}

void PrintOps(Bench& bench) {
  const std::array<double, 2> phases = bench.Step(true);
  std::vector<std::pair<std::string, double>> rows;
  for (size_t i = 0; i < phases.size(); ++i) rows.emplace_back(Bench::kPhases[i], phases[i]);
  fmt::print("phases of one step:\n");
  PrintShares(rows);
  OpTimes times;
  bench.Training().RunTimed(times);
  rows.assign(times.begin(), times.end());
  std::ranges::sort(rows, std::greater<>(), &std::pair<std::string, double>::second);
  fmt::print("ops of forward and backward:\n");
  PrintShares(rows);
}

double Total(const std::array<double, 2>& phases) {
  return std::accumulate(phases.begin(), phases.end(), 0.0);
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
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
  auto* steps = app.add_option("--steps", form->steps, "Steps to time after one warm-up")
                    ->check(CLI::Range(1, 100000))
                    ->capture_default_str();
  auto* ops = app.add_flag("--ops", form->ops, "Also time one step op by op");
  app.add_flag("--json", form->json, "Print one JSON object a line")->excludes(ops);
  app.add_flag("--wait-for-line", form->wait_for_line,
               "Time a step for each line of standard input, as JSON, until it ends")
      ->excludes(steps)
      ->excludes(ops);
  return [options, form] {
    const Config config = options->Load(kForModel);
    if (config.train().threads() > 0) SetThreadCount(config.train().threads());
    Bench bench(config);
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
    const double median = seconds.empty() ? 0 : Median(seconds);
    const double best = seconds.empty() ? 0 : *std::ranges::min_element(seconds);
    if (json) {
      PrintLine({{"median", median},
                 {"best", best},
                 {"seconds", seconds},
                 {"flops", bench.flops()},
                 {"mfu", bench.flops() / (median * peak)},
                 {"peak_resident_bytes", PeakResidentBytes()},
                 {"device", bench.device().name()},
                 {"peak_device_bytes", bench.device().peak_bytes()},
                 {"kernel_seconds", bench.device_seconds()}});
      return ExitCode::kDone;
    }
    fmt::print(
        "step {:.4f} s (best {:.4f}), {} threads, {} FLOPs, {}FLOP/s{}, {:.0f} input tokens/s, "
        "peak memory {}\n",
        median, best, ThreadCount(), HumanCount(bench.flops()), HumanCount(bench.flops() / median),
        std::isnan(peak) ? ""
                         : fmt::format(" (MFU {:.1f}%)", 100 * bench.flops() / (median * peak)),
        static_cast<double>(bench.input_tokens()) / median,
        HumanBytes(static_cast<double>(PeakResidentBytes())));
    if (form->ops) PrintOps(bench);
    return ExitCode::kDone;
  };
}

}  // namespace syntra
