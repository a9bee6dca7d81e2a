// syntra plan
#include <CLI/CLI.hpp>

#include "base/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/config_options.h"
#include "cli/report_options.h"
#include "train/sizes.h"

namespace syntra {
namespace {

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
       fmt::format("{} x {}/{}", sizes.rows, sizes.input_length, sizes.target_length));
  fmt::print("memory of a rank\n");
  line("  parameters", HumanBytes(sizes.parameter_bytes));
  const int buffers = sizes.gradient_buffers;
  line("  gradients", (buffers > 1 ? fmt::format("{} x ", buffers) : "") +
                          HumanBytes(sizes.gradient_bytes / buffers));
  line("  optimizer state", HumanBytes(sizes.optimizer_bytes));
  line("  activations", HumanBytes(sizes.activation_bytes));
  if (sizes.evaluation_bytes > 0) line("  evaluation", HumanBytes(sizes.evaluation_bytes));
  line("  total", HumanBytes(sizes.total_bytes()));
  line("checkpoint", HumanBytes(sizes.checkpoint_bytes));
}

void PrintJson(const RunSizes& sizes) {
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
                               {"total_bytes", sizes.total_bytes()},
                               {"checkpoint_bytes", sizes.checkpoint_bytes}}));
}

}  // namespace

Action SetUpPlan(CLI::App& app) {
  const auto options = AddConfigOptions(app);
  const auto form = AddReportOptions(app);
  return [options, form] {
    const RunSizes sizes = RunSizesOf(options->Load(kForModel), form->ranks);
    form->json ? PrintJson(sizes) : PrintText(sizes);
    return ExitCode::kDone;
  };
}

}  // namespace syntra
