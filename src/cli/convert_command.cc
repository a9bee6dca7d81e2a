// SPDX-License-Identifier: Apache-2.0
// syntra convert
#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/text.h"
#include "cli/commands.h"
#include "convert/convert.h"

namespace syntra {

Action SetUpConvert(CLI::App& app) {
  struct Options {
    std::string input, output, to, tokenizer;
    std::string dtype = "f32";
    int average = 1;
  };
  const auto options = std::make_shared<Options>();
  std::vector<std::string> names;
  for (const ModelFormat& format : ModelFormats()) names.emplace_back(format.name);
  app.add_option("--input,input", options->input,
                 "Model to read: a checkpoint, a directory of checkpoints (the newest valid one is "
                 "used), a Hugging Face T5, or the output of --to safetensors")
      ->required()
      ->type_name("DIR");
  app.add_option("--output,output", options->output, "Directory to write to; must be new or empty")
      ->required()
      ->type_name("DIR");
  app.add_option("--to", options->to,
                 "Format to write; syntra: a checkpoint without optimizer state; huggingface: a T5 "
                 "that transformers can load, from models that only have dot-product attention; "
                 "safetensors: any model, with this program's parameter names")
      ->required()
      ->check(CLI::IsMember(names));
  app.add_option("--tokenizer", options->tokenizer,
                 "SentencePiece model that the input was trained with, if the input has none")
      ->type_name("FILE");
  app.add_option("--average", options->average,
                 "Write the mean of the parameters of a run's N newest checkpoints, which is often "
                 "better than the last; the run must have kept them (checkpoint.keep)")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--dtype", options->dtype, "Element type of huggingface and safetensors files")
      ->check(CLI::IsMember({"f32", "bf16"}))
      ->capture_default_str();
  return [options] {
    const auto rows = ModelFormats();
    const ModelFormat& to = *std::ranges::find(
        rows, options->to, [](const ModelFormat& row) { return std::string(row.name); });
    const SafetensorsOptions storage{.type = options->dtype == "bf16" ? SafetensorsType::kBF16
                                                                      : SafetensorsType::kF32};
    const Conversion done =
        Convert(options->input, options->output, to, storage, options->tokenizer, options->average);
    fmt::print("{}: {} parameters in {} tensors, {} to {}; read back and compared with {}\n",
               options->output, WithThousands(done.parameters), done.tensors, done.from, done.to,
               done.source);
    return ExitCode::kDone;
  };
}

}  // namespace syntra
