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
  const Path prepared = RunDirectory{config.train().directory()}.Prepared(data);
  if (validation) {
    if (data.validation_size() == 0) Fail(ExitCode::kConfig, "data.validation is not set");
    PrepareCorpus(ValidationPreparation(data, prepared), tokenizer);
    const ValidationData rows = ValidationData::Open(data, tokenizer, prepared);
    count = std::min(count, rows.example_count());
    return rows.Get(0, count, 0, count);
  }
  PrepareCorpus(TrainingPreparation(data, prepared), tokenizer);
  return TrainingData::Open(data, tokenizer, prepared, config.train().seed())
      .Get(0, count, 0, count);
}

struct Preview {
  std::string input, target;
  std::vector<int32_t> encoder_ids, encoder_segments, decoder_ids, decoder_segments, targets;
};

std::vector<Preview> PreviewExamples(const Config& config, bool validation, int64_t count) {
  const Tokenizer tokenizer = OpenTokenizer(config);
  const Batch batch = FirstRows(config, tokenizer, validation, count);
  std::vector<Preview> examples;
  for (int64_t row = 0; row < batch.rows; ++row) {
    const auto row_of = [row](const std::vector<int32_t>& values, int64_t length) {
      return std::vector(values.begin() + row * length, values.begin() + (row + 1) * length);
    };
    // Without EOS, which would end the text: packed rows hold several examples.
    const auto text = [&](std::vector<int32_t> ids) {
      std::erase(ids, tokenizer.eos_id());
      return tokenizer.Decode(ids);
    };
    Preview example{.input = {},
                    .target = {},
                    .encoder_ids = row_of(batch.encoder_ids, batch.input_length),
                    .encoder_segments = row_of(batch.encoder_segments, batch.input_length),
                    .decoder_ids = row_of(batch.decoder_ids, batch.target_length),
                    .decoder_segments = row_of(batch.decoder_segments, batch.target_length),
                    .targets = row_of(batch.targets, batch.target_length)};
    example.input = text(example.encoder_ids);
    example.target = text(example.targets);
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
  app.add_flag("--json", form->json, "Print JSON, with the rows' ids and segments");
  return [options, form] {
    const std::vector<Preview> examples =
        PreviewExamples(options->Load(kForTraining), form->split == "validation", form->count);
    Json list = Json::array();
    for (const Preview& example : examples) {
      list.push_back({{"input", example.input},
                      {"target", example.target},
                      {"encoder_ids", example.encoder_ids},
                      {"encoder_segments", example.encoder_segments},
                      {"decoder_ids", example.decoder_ids},
                      {"decoder_segments", example.decoder_segments},
                      {"targets", example.targets}});
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
                    {{"data", "Show corrupted examples as text", SetUpData},
                     {"checkpoint", "List the tensors of a checkpoint", SetUpCheckpoint},
                     {"memory", "List what is alive where a step needs most memory", SetUpMemory}});
}

}  // namespace syntra
