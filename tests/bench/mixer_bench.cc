// SPDX-License-Identifier: Apache-2.0
// One mixing layer by itself: its forward and backward pass, with gradients of its input and of all
// its parameters. Prints a line of JSON with its parameters and operations once it is ready, and
// one with the seconds of a pass for each line of standard input; at the end the peak memory.
// tests/bench/mixers runs it.
//
//   mixer_bench --mixer 'linear_attention { heads: 8 }' --length 2048 [--causal]
//
// With --ops N it prints instead how N passes divide into the seconds of their ops.

#include <google/protobuf/text_format.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>

#include "core/arena.h"
#include "core/random_fill.h"
#include "core/thread.h"
#include "kernels/backend.h"
#include "mixers/mixer.h"
#include "mixers/relative_bias.h"
#include "nn/tensors.h"
#include "plan/op_work.h"
#include "program/executable.h"
#include "tests/bench/timed_lines.h"

namespace syntra {
namespace {

struct Options {
  std::string mixer;
  int64_t batch = 4, length = 512, width = 512;
  bool causal = false;
  int threads = 0, ops = 0;
  bool by_operands = false;
};

class Layer {
 public:
  explicit Layer(const Options& options) : options_(options) {
    MixerConfig config;
    SYNTRA_CHECK(google::protobuf::TextFormat::ParseFromString(options.mixer, &config), "{}",
                 options.mixer);
    const auto mixer = MakeMixer(config);
    ProgramBuilder builder;
    Recording recording{.program = builder, .parameters = parameters_, .declares = &parameters_};
    Record(*mixer, Scope(recording));
    values_.emplace(Host(), parameters_.arena_elements(), "parameters");
    gradients_.emplace(Host(), parameters_.gradient_elements(), "gradients");
    for (const Parameter& parameter : parameters_.all()) {
      Initialize(parameter, 1, values_->host().subspan(parameter.offset, parameter.shape.size()));
    }
    program_.emplace(std::move(builder).Build(), CpuBackend(),
                     Arenas{values_->data(), gradients_->data()});
    const int64_t tokens = options.batch * options.length;
    program_->SetInput("segments", std::span<const int32_t>(std::vector<int32_t>(tokens, 1)));
    std::vector<float> cotangent(tokens * options.width);
    FillNormal({1, 2}, 1, 0, cotangent);
    program_->SetInput("cotangent", std::span<const float>(cotangent));
  }

  void Run() { program_->Run(Gradients::kReplace); }
  RunTimes TimedRun() {
    RunTimes times;
    program_->Run(Gradients::kReplace, {}, &times);
    return times;
  }

  // Multiply-adds count twice; those of the scalar are left out.
  double flops() const { return program_->program().flops; }
  int64_t parameters() const {
    return parameters_.trainable_element_count() -
           options_.batch * options_.length * options_.width;
  }

 private:
  // The scalar to differentiate is sum(y * cotangent).
  void Record(const TokenMixer& mixer, const Scope& root) {
    const Shape rows{options_.batch, options_.length, options_.width};
    const Value x = root.Parameter("x", rows, Initializer::Normal(1));
    const int64_t heads = mixer.traits().bias_heads;
    const BiasExtent extent{options_.length, options_.length, options_.causal};
    const Value bias =
        heads == 0 ? Value{}
                   : RelativeBias(root, "relative_bias", RelativeBiasConfig(), heads, extent);
    ProgramBuilder& program = root.program();
    const TensorType segments{DType::kI32, {options_.batch, options_.length}};
    const Value y = mixer.Build(root / "mixer", {.x = x,
                                                 .segments = program.Input("segments", segments),
                                                 .positions = {},
                                                 .relative_bias = bias,
                                                 .causal = options_.causal,
                                                 .memory = {}});
    const Value cotangent = program.Input("cotangent", {DType::kF32, rows});
    program.Differentiate(SumTo(root, y, {1}, cotangent));
  }

  Options options_;
  ParameterStore parameters_;
  std::optional<Arena> values_, gradients_;
  std::optional<Executable> program_;
};

// Milliseconds a pass of each op, or of its calls with operands of the same types, the longest
// first.
void PrintOps(const Options& options) {
  Layer layer(options);
  layer.Run();
  std::map<std::string, double> ops;
  for (int i = 0; i < options.ops; ++i) {
    for (const OpWork& op : OpsOfRun(layer.TimedRun(), options.by_operands)) {
      ops[op.operands.empty() ? op.op : op.op + " " + op.operands] += op.seconds;
    }
  }
  std::vector<std::pair<std::string, double>> rows(ops.begin(), ops.end());
  std::ranges::sort(rows, std::greater<>(), &std::pair<std::string, double>::second);
  for (const auto& [name, seconds] : rows) {
    std::cout << name << ": " << 1e3 * seconds / options.ops << " ms\n";
  }
}

void Serve(const Options& options) {
  Layer layer(options);
  layer.Run();
  PrintLine({{"parameters", layer.parameters()}, {"flops", layer.flops()}});
  TimeEachLine([&] { layer.Run(); });
  PrintLine(PeakMemory());
}

}  // namespace
}  // namespace syntra

int main(int argc, char** argv) {
  CLI::App app("One mixing layer, forward and backward.");
  syntra::Options options;
  app.add_option("--mixer", options.mixer, "MixerConfig as text")->required();
  app.add_option("--batch", options.batch);
  app.add_option("--length", options.length);
  app.add_option("--width", options.width);
  app.add_option("--threads", options.threads, "0: all");
  app.add_flag("--causal", options.causal);
  app.add_option("--ops", options.ops, "Print the time of each op over so many passes");
  app.add_flag("--by-operands", options.by_operands,
               "With --ops: tell calls of an op with operands of other shapes or types apart");
  CLI11_PARSE(app, argc, argv);
  if (options.threads > 0) syntra::SetThreadCount(options.threads);
  return syntra::EndedBy(
      [&] { options.ops > 0 ? syntra::PrintOps(options) : syntra::Serve(options); });
}
