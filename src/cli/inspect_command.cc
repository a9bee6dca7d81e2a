// SPDX-License-Identifier: Apache-2.0
// syntra inspect data|checkpoint|memory
#include <CLI/CLI.hpp>

#include "base/json.h"
#include "base/text.h"
#include "checkpoint/read.h"
#include "cli/commands.h"
#include "cli/config_options.h"
#include "data/training_data.h"
#include "data/validation_data.h"
#include "train/run_directory.h"
#include "train/run_tokenizer.h"
#include "train/sizes.h"
#include "train/snapshot.h"

namespace syntra {
namespace {

Action SetUpCheckpoint(CLI::App& app) {
  struct Options {
    std::string directory;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  app.add_option("directory", options->directory, "Checkpoint, or a directory with some")
      ->required()
      ->type_name("DIR");
  app.add_flag("--json", options->json, "Print JSON");
  return [options] {
    const Checkpoint checkpoint = OpenNewest(options->directory);
    if (options->json) {
      Json tensors = Json::array();
      for (const auto& [name, entry] : checkpoint.tensors()) {
        const auto dims = entry.type.shape.dims();
        tensors.push_back({{"name", name},
                           {"shape", std::vector<int64_t>(dims.begin(), dims.end())},
                           {"dtype", NameOf(entry.type.dtype)}});
      }
      Json files = Json::object();
      for (const auto& [name, file] : checkpoint.files()) files[name] = file.bytes;
      fmt::print("{}\n", JsonText({{"path", checkpoint.path().string()},
                                   {"step", checkpoint.info().step},
                                   {"run_id", checkpoint.info().run_id},
                                   {"tokenizer_digest", TokenizerIdentityOf(checkpoint)},
                                   {"files", files},
                                   {"tensors", tensors}}));
      return ExitCode::kDone;
    }
    fmt::print("{}: step {}, run {}\n", Printable(checkpoint.path().string()),
               checkpoint.info().step, Printable(checkpoint.info().run_id));
    const bool has_tokenizer = checkpoint.HasFile(kTokenizerFile);
    fmt::print("tokenizer XXH3-128 {}{}\n", Printable(TokenizerIdentityOf(checkpoint)),
               has_tokenizer ? fmt::format(", in {}", kTokenizerFile) : "");
    double bytes = 0;
    for (const auto& [name, entry] : checkpoint.tensors()) {
      fmt::print("  {:60} {}\n", name, ToString(entry.type));
      bytes += static_cast<double>(entry.type.bytes());
    }
    fmt::print("{} tensors, {}; every file matches its digest\n", checkpoint.tensors().size(),
               HumanBytes(bytes));
    return ExitCode::kDone;
  };
}

// The first `count` rows of a split: of its first batch of training, or of its validation examples.
Batch FirstRows(const Config& config, const Tokenizer& tokenizer, bool validation, int64_t count) {
  const DataConfig& data = config.data();
  const RowLayout& layout = ArchitectureOf(config.model()).layout();
  const Path prepared = RunDirectory{config.train().directory()}.Prepared(data);
  if (validation) {
    if (data.validation_size() == 0) Fail(ExitCode::kConfig, "data.validation is not set");
    PrepareCorpus(ValidationPreparation(data, prepared), tokenizer);
    const ValidationData rows = ValidationData::Open(data, layout, tokenizer, prepared);
    count = std::min(count, rows.example_count());
    return rows.Get(0, count, 0, count);
  }
  PrepareCorpus(TrainingPreparation(data, prepared), tokenizer);
  return TrainingData::Open(data, layout, tokenizer, prepared, config.train().seed())
      .Get(0, count, 0, count);
}

struct Preview {
  std::string input, target;
  Json tensors = Json::object();  // by name, what the row has of each
};

std::vector<Preview> PreviewExamples(const Config& config, bool validation, int64_t count) {
  const Tokenizer tokenizer = OpenTokenizer(config);
  const Batch batch = FirstRows(config, tokenizer, validation, count);
  // Without EOS, which would end the text: packed rows hold several examples.
  const auto text = [&](std::vector<int32_t> ids) {
    std::erase(ids, tokenizer.eos_id());
    std::erase(ids, kIgnoredTarget);
    return tokenizer.Decode(ids);
  };
  std::vector<Preview> examples;
  for (int64_t row = 0; row < batch.rows; ++row) {
    const std::span<const int32_t> targets = batch.Row("targets", row);
    Preview example{text(ArchitectureOf(config.model()).layout().InputsOf(batch, row)),
                    text({targets.begin(), targets.end()})};
    for (const auto& [name, values] : batch.tensors()) {
      const std::span<const int32_t> ids = batch.Row(name, row);
      example.tensors[name] = std::vector(ids.begin(), ids.end());
    }
    examples.push_back(std::move(example));
  }
  return examples;
}

Action SetUpData(CLI::App& app) {
  const auto options = AddConfigOptions(app);
  struct Form {
    int64_t count = 3;
    std::string split = "train";
    bool json = false;
  };
  const auto form = std::make_shared<Form>();
  app.add_option("--examples", form->count, "How many of the first rows")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--split", form->split, "Rows of training, or of validation")
      ->check(CLI::IsMember({"train", "validation"}))
      ->capture_default_str();
  app.add_flag("--json", form->json, "Print JSON, with the rows' tensors");
  return [options, form] {
    const std::vector<Preview> examples =
        PreviewExamples(options->Load(kForTraining), form->split == "validation", form->count);
    Json list = Json::array();
    for (const Preview& example : examples) {
      Json json{{"input", example.input}, {"target", example.target}};
      json.update(example.tensors);
      list.push_back(std::move(json));
      if (!form->json) fmt::print("input:  {}\ntarget: {}\n\n", example.input, example.target);
    }
    if (form->json) {
      fmt::print("{}\n", JsonText({{"examples", list}}));
    }
    return ExitCode::kDone;
  };
}

Action SetUpMemory(CLI::App& app) {
  const auto options = AddConfigOptions(app);
  const auto as_json = std::make_shared<bool>(false);
  app.add_flag("--json", *as_json, "Print JSON");
  return [options, as_json] {
    Json list = Json::array();
    for (const LiveBlock& block : LargestAtPeak(options->Load(kForModel), 30)) {
      list.push_back({{"bytes", block.bytes}, {"type", block.type}, {"made_by", block.made_by}});
      if (*as_json) continue;
      fmt::print("{:>10}  {:24} {}\n", HumanBytes(static_cast<double>(block.bytes)), block.type,
                 block.made_by);
    }
    if (*as_json) fmt::print("{}\n", JsonText({{"alive_at_peak", list}}));
    return ExitCode::kDone;
  };
}

}  // namespace

Action SetUpInspect(CLI::App& app) {
  return SetUpParts(app,
                    {{"data", "Show examples as text", SetUpData},
                     {"checkpoint", "List the tensors of a checkpoint", SetUpCheckpoint},
                     {"memory", "List what is alive where a step needs most memory", SetUpMemory}});
}

}  // namespace syntra
