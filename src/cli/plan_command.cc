// SPDX-License-Identifier: Apache-2.0
// syntra plan
#include <CLI/CLI.hpp>
#include <cmath>

#include "base/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/config_options.h"
#include "cli/report_options.h"
#include "core/thread.h"
#include "kernels/cuda.h"
#include "train/replica.h"
#include "train/sizes.h"

namespace syntra {
namespace {

// What a step may take on this machine.
struct TimeEstimate {
  double peak = NAN;  // FLOP/s of all threads together, measured now; NaN: not known
  double share = 0;   // of the peak
  double step = NAN;  // seconds
  double run = NAN;   // seconds of all steps, without evaluations and checkpoints
  const char* unknown_because = "the peak of this processor is not known";
};

// Of a step's FLOPs at the share of the peak that the training step of a 60 M model reached, see
// "Measured" in README.md.
TimeEstimate EstimateTime(const Config& config, const RunSizes& sizes) {
  TimeEstimate estimate;
  const TrainConfig& train = config.train();
  if (train.device() == TrainConfig::CUDA ||
      (train.device() == TrainConfig::AUTO && FindGpus().count > 0)) {
    estimate.unknown_because = "no speed on a GPU has been measured";
    return estimate;
  }
  if (train.threads() > 0) SetThreadCount(train.threads());
  const DType type = ActivationType(train.precision());
  estimate.peak = CpuBackend().PeakFlops(type);
  estimate.share = type == DType::kBF16 ? 0.75 : 0.80;
  estimate.step = sizes.flops_per_step / (estimate.share * estimate.peak);
  estimate.run = estimate.step * static_cast<double>(train.steps());
  return estimate;
}

void PrintTime(const TimeEstimate& estimate, int ranks) {
  if (std::isnan(estimate.step)) {
    fmt::print("time of a step: no estimate, as {}; syntra bench measures it\n",
               estimate.unknown_because);
    return;
  }
  fmt::print("{:22} {:>18}\n", "time of a step", fmt::format("about {:.2g} s", estimate.step));
  fmt::print("{:22} {:>18}\n", "time of the run", "about " + HumanDuration(estimate.run));
  if (ranks > 1) {
    fmt::print("{:22} {:>18}\n", fmt::format("  on {} machines", ranks),
               "about " + HumanDuration(estimate.run / ranks));
  }
  fmt::print(
      "The times are estimates: {:.0f} % of the {:.0f} GFLOP/s that {} thread{} of this machine "
      "can "
      "reach "
      "now.\nA model of 60 M parameters reached that share; small ones reach less. Evaluations, "
      "checkpoints\nand communication are not counted. To measure a step: syntra bench\n",
      100 * estimate.share, 1e-9 * estimate.peak, ThreadCount(), ThreadCount() == 1 ? "" : "s");
}

void PrintText(const RunSizes& sizes) {
  const auto line = [](const char* name, const std::string& value) {
    fmt::print("{:22} {:>18}\n", name, value);
  };
  line("parameters", WithThousands(sizes.parameters));
  if (sizes.trainable_parameters != sizes.parameters) {
    line("  of which learn", WithThousands(sizes.trainable_parameters));
  }
  line("FLOPs a step", HumanCount(sizes.flops_per_step));
  line("micro-batch",
       sizes.input_length == 0
           ? fmt::format("{} x {}", sizes.rows, sizes.target_length)
           : fmt::format("{} x {}/{}", sizes.rows, sizes.input_length, sizes.target_length));
  fmt::print("memory of a rank\n");
  line("  parameters", HumanBytes(sizes.parameter_bytes));
  const int buffers = sizes.gradient_buffers;
  line("  gradients", (buffers > 1 ? fmt::format("{} x ", buffers) : "") +
                          HumanBytes(sizes.gradient_bytes / buffers));
  line("  optimizer state", HumanBytes(sizes.optimizer_bytes));
  line("  activations", HumanBytes(sizes.activation_bytes));
  if (sizes.evaluation_bytes > 0) line("  or in evaluation", HumanBytes(sizes.evaluation_bytes));
  line("  total", HumanBytes(sizes.total_bytes()));
  line("checkpoint", HumanBytes(sizes.checkpoint_bytes));
}

void PrintJson(const RunSizes& sizes, const TimeEstimate& time) {
  fmt::print("{}\n", JsonText({{"parameters", sizes.parameters},
                               {"trainable_parameters", sizes.trainable_parameters},
                               {"flops_per_step", sizes.flops_per_step},
                               {"micro_batch_rows", sizes.rows},
                               {"input_length", sizes.input_length},
                               {"target_length", sizes.target_length},
                               {"parameter_bytes", sizes.parameter_bytes},
                               {"gradient_buffers", sizes.gradient_buffers},
                               {"gradient_bytes", sizes.gradient_bytes},
                               {"optimizer_bytes", sizes.optimizer_bytes},
                               {"activation_bytes", sizes.activation_bytes},
                               {"evaluation_bytes", sizes.evaluation_bytes},
                               {"update_bytes", sizes.update_bytes},
                               {"total_bytes", sizes.total_bytes()},
                               {"checkpoint_bytes", sizes.checkpoint_bytes},
                               {"estimated_step_seconds", time.step},
                               {"estimated_run_seconds", time.run},
                               {"peak_flops", time.peak},
                               {"assumed_share_of_peak", time.share}}));
}

}  // namespace

Action SetUpPlan(CLI::App& app) {
  const auto options = AddConfigOptions(app);
  const auto form = AddReportOptions(app);
  return [options, form] {
    const Config config = options->Load(kForModel);
    const RunSizes sizes = RunSizesOf(config, form->ranks);
    const TimeEstimate time = EstimateTime(config, sizes);
    if (form->json) {
      PrintJson(sizes, time);
    } else {
      PrintText(sizes);
      PrintTime(time, form->ranks);
    }
    return ExitCode::kDone;
  };
}

}  // namespace syntra
