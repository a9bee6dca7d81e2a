// syntra bench: times whole training steps on random tokens, then one op by op.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/config_options.h"
#include "core/corruption_lengths.h"
#include "core/random.h"
#include "core/thread.h"
#include "train/replica.h"
#include "train/step.h"

namespace syntra {
namespace {

// A full batch of random tokens: shapes and costs of training, no corpus needed.
Batch RandomBatch(const Config& config) {
  const DataConfig& data = config.data();
  const CorruptionLengths lengths =
      LengthsFor(data.input_length(), data.noise_density(), data.mean_span_length());
  Batch batch(BatchPartition::Of(config.train(), 1).micro_batch_rows, data.input_length(),
              lengths.targets);
  uint64_t counter = 0;
  const auto fill = [&](std::vector<int32_t>& ids) {
    for (int32_t& id : ids) {
      const uint32_t bits = RandomAt({1, 2}, counter++)[0];
      id = 2 + static_cast<int32_t>(UniformBelow(bits, config.model().vocabulary_size() - 2));
    }
  };
  fill(batch.encoder_ids);
  fill(batch.decoder_ids);
  fill(batch.targets);
  std::ranges::fill(batch.encoder_segments, 1);
  std::ranges::fill(batch.decoder_segments, 1);
  batch.target_tokens = static_cast<int64_t>(batch.targets.size());
  return batch;
}

void PrintOps(Executable& executable) {
  OpTimes times;
  executable.RunTimed(times);
  std::vector<std::pair<std::string, double>> rows(times.begin(), times.end());
  std::ranges::sort(rows, std::greater<>(), &std::pair<std::string, double>::second);
  double total = 0;
  for (const auto& row : rows) total += row.second;
  for (const auto& [op, seconds] : rows) {
    fmt::print("  {:28} {:9.2f} ms {:5.1f}%\n", op, 1e3 * seconds, 100 * seconds / total);
  }
}

}  // namespace

Action SetUpBench(CLI::App& app) {
  const auto options = AddConfigOptions(app);
  struct Form {
    int steps = 5;
    bool ops = false;
  };
  const auto form = std::make_shared<Form>();
  app.add_option("--steps", form->steps, "Steps to time after one warm-up")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_flag("--ops", form->ops, "Also time one step op by op");
  return [options, form] {
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    const Config config = options->Load(kForModel);
    if (config.train().threads() > 0) SetThreadCount(config.train().threads());
    Replica replica(config.model(), &config.optimizer(),
                    ActivationType(config.train().precision()));
    replica.SetLoss({config.train().z_loss(), config.train().label_smoothing()},
                    config.train().recompute());
    replica.InitializeParameters(config.train().seed());
    const Batch batch = RandomBatch(config);
    const BatchShape shape{batch.rows, batch.input_length, batch.target_length};
    const auto step = [&](int64_t index) {
      replica.ZeroGradients();
      replica.Differentiate(
          batch, {.seed = 1,
                  .step = index,
                  .inverse_denominator = 1.0 / static_cast<double>(batch.target_tokens)});
      replica.GradientNorm();
      replica.Update({.step = index, .rate = 1e-4});
    };
    const auto seconds_since = [](Clock::time_point start) {
      return std::chrono::duration<double>(Clock::now() - start).count();
    };
    step(0);
    fmt::print("first step done after {:.3f} s\n", seconds_since(begin));
    std::vector<double> seconds;
    for (int i = 1; i <= form->steps; ++i) {
      const auto start = Clock::now();
      step(i);
      seconds.push_back(seconds_since(start));
    }
    std::ranges::sort(seconds);
    const double median = seconds[seconds.size() / 2];
    const double flops = 3 * replica.Training(shape).program().forward_flops();
    fmt::print("step {:.4f} s (best {:.4f}), {} threads, {} FLOPs, {}FLOP/s, {:.0f} input tokens/s\n",
               median, seconds.front(), ThreadCount(), HumanCount(flops), HumanCount(flops / median),
               static_cast<double>(batch.rows * batch.input_length) / median);
    if (form->ops) PrintOps(replica.Training(shape));
    return ExitCode::kDone;
  };
}

}  // namespace syntra
