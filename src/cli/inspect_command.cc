// SPDX-License-Identifier: Apache-2.0
// syntra inspect data|checkpoint|checkpoints|memory|shards
#include <CLI/CLI.hpp>
#include <algorithm>
#include <span>

#include "base/json.h"
#include "base/text.h"
#include "checkpoint/read.h"
#include "cli/checkpoint_options.h"
#include "cli/checkpoint_states.h"
#include "cli/commands.h"
#include "cli/report_options.h"
#include "cli/run_config.h"
#include "data/training_data.h"
#include "data/validation_data.h"
#include "plan/plan_details.h"
#include "tasks/task.h"
#include "train/run_directory.h"
#include "train/run_tokenizer.h"
#include "train/snapshot.h"
#include "train/task_data.h"

namespace syntra {
namespace {

struct PlaceOptions {
  std::string directory;
  bool json = false;
};

// Adds --checkpoint, which is also an argument of the name `argument`, and --json.
std::shared_ptr<PlaceOptions> AddPlaceOptions(CLI::App& app, const std::string& argument,
                                              const std::string& description) {
  const auto options = std::make_shared<PlaceOptions>();
  app.add_option("--checkpoint," + argument, options->directory, description)
      ->required()
      ->type_name("DIR");
  app.add_flag("--json", options->json, "Print JSON");
  return options;
}

Action SetUpCheckpoint(CLI::App& app) {
  const auto options = AddPlaceOptions(
      app, "checkpoint",
      "Checkpoint, or a directory of checkpoints, of which the newest valid one is used");
  return [options] {
    const Checkpoint checkpoint = OpenCheckpoint(options->directory);
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
      fmt::print("  {:60} {}\n", Printable(name), ToString(entry.type));
      bytes += static_cast<double>(entry.type.bytes());
    }
    fmt::print("{} tensors, {}; every file matches its digest\n", checkpoint.tensors().size(),
               HumanBytes(bytes));
    return ExitCode::kDone;
  };
}

void PrintState(const CheckpointState& state, size_t width) {
  fmt::print("{:{}}  {:>9}  {}\n", Printable(state.path.string()), width, HumanBytes(state.bytes),
             state.problem.empty() ? fmt::format("step {}, intact", WithThousands(state.step))
                                   : Printable(state.problem));
  std::fflush(stdout);  // the next one may take long to read
}

Json JsonOf(const CheckpointState& state) {
  const bool intact = state.problem.empty();
  return {{"path", state.path.string()},
          {"step", intact ? Json(state.step) : Json()},
          {"bytes", state.bytes},
          {"intact", intact},
          {"problem", intact ? Json() : Json(state.problem)}};
}

// Ends as if the first damaged checkpoint had been needed.
Action SetUpCheckpoints(CLI::App& app) {
  const auto options =
      AddPlaceOptions(app, "directory", "Run directory, directory of checkpoints, or checkpoint");
  return [options] {
    const std::vector<Path> paths = AllCheckpointsAt(options->directory);
    size_t width = 0, damaged = 0;
    for (const Path& path : paths) width = std::max(width, path.string().size());
    Json list = Json::array();
    for (const Path& path : paths) {
      const CheckpointState state = StateOfCheckpoint(path);
      if (!state.problem.empty()) ++damaged;
      if (!options->json) PrintState(state, width);
      list.push_back(JsonOf(state));
    }
    if (options->json) {
      fmt::print("{}\n", JsonText({{"checkpoints", list}}));
    } else {
      fmt::print("{} of {} intact\n", paths.size() - damaged,
                 Counted(std::ssize(paths), "checkpoint"));
    }
    return damaged == 0 ? ExitCode::kDone : ExitCode::kCheckpoint;
  };
}

// Looking at data must not cost a run its token shards.
void PrepareToLook(PrepareOptions options, const Tokenizer& tokenizer) {
  options.replaces_shards = false;
  PrepareCorpus(options, tokenizer);
}

// The first `count` rows of a split: of its first batch of training, or of its validation examples.
Batch FirstRows(const Config& config, const Tokenizer& tokenizer, bool validation, int64_t count) {
  const DataConfig& data = config.data();
  const RowLayout& layout = ArchitectureOf(config.model()).layout();
  const Path prepared = RunDirectory{config.train().directory()}.Prepared(data);
  if (validation) {
    RequireValidation(data);
    PrepareToLook(ValidationPreparation(data, prepared), tokenizer);
    const ValidationData rows = ValidationData::Open(data, layout, tokenizer, prepared);
    count = std::min(count, rows.example_count());
    return rows.Get(0, count, 0, count);
  }
  PrepareToLook(TrainingPreparation(data, prepared), tokenizer);
  return TrainingData::Open(data, layout, tokenizer, prepared, config.train().seed())
      .Get(0, count, 0, count);
}

struct Preview {
  std::string task;  // empty: of a corpus
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
    Preview example{"", text(ArchitectureOf(config.model()).layout().InputsOf(batch, row)),
                    text({targets.begin(), targets.end()})};
    for (const auto& [name, values] : batch.tensors()) {
      const std::span<const int32_t> ids = batch.Row(name, row);
      example.tensors[name] = std::vector(ids.begin(), ids.end());
    }
    examples.push_back(std::move(example));
  }
  return examples;
}

// The first `count` examples of each task, as the model reads and writes them.
std::vector<Preview> PreviewTasks(const Config& config, bool validation, int64_t count) {
  const auto use = validation ? TaskSplit::Use::kValidation : TaskSplit::Use::kTrain;
  const TaskFolder folder = TaskFolderOf(config.data());
  std::vector<Preview> previews;
  for (const std::unique_ptr<Task>& task : MakeTasks(config.data())) {
    for (const TaskSplit& split : task->traits().splits) {
      if (split.use != use) continue;
      const std::vector<TaskExample> examples = ReadSplit(*task, split, folder);
      for (int64_t i = 0; i < std::min(count, std::ssize(examples)); ++i) {
        previews.push_back({task->traits().name, examples[i].inputs, examples[i].targets});
      }
    }
  }
  if (previews.empty()) FailWithoutSplit(use);
  return previews;
}

void PrintPreviews(const std::vector<Preview>& previews, bool as_json) {
  Json list = Json::array();
  for (const Preview& preview : previews) {
    Json json = Json::object();
    if (!preview.task.empty()) json["task"] = preview.task;
    json.update({{"input", preview.input}, {"target", preview.target}});
    json.update(preview.tensors);
    list.push_back(std::move(json));
    if (as_json) continue;
    if (!preview.task.empty()) fmt::print("task:   {}\n", Printable(preview.task));
    fmt::print("input:  {}\ntarget: {}\n\n", Printable(preview.input), Printable(preview.target));
  }
  if (as_json) fmt::print("{}\n", JsonText({{"examples", list}}));
}

Action SetUpData(CLI::App& app) {
  const auto options = AddConfigOptions(app);
  struct Form {
    int64_t count = 3;
    std::string split = "train";
    bool json = false;
  };
  const auto form = std::make_shared<Form>();
  app.add_option("--examples", form->count,
                 "Print this many of the first rows, or of each task's first examples")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--split", form->split, "Split to print rows of")
      ->check(CLI::IsMember({"train", "validation"}))
      ->capture_default_str();
  app.add_flag("--json", form->json, "Print JSON; for corpora, with the rows' tensors");
  return [options, form] {
    const bool validation = form->split == "validation";
    PrintPreviews(
        NamesTasks(*options)
            ? PreviewTasks(LoadForFinetuning(*options, {.may_lack = true}, {.tasks = true}).config,
                           validation, form->count)
            : PreviewExamples(options->Load(kForTraining), validation, form->count),
        form->json);
    return ExitCode::kDone;
  };
}

size_t SumOfBytes(std::span<const LiveBlock> blocks) {
  size_t sum = 0;
  for (const LiveBlock& block : blocks) sum += block.bytes;
  return sum;
}

std::string SizeText(size_t bytes) {
  return fmt::format("{:>10}", HumanBytes(static_cast<double>(bytes)));
}

// Prints the first `count` tensors, and what the rest and all of them take.
void PrintAlive(std::span<const LiveBlock> alive, size_t count) {
  for (const LiveBlock& block : alive.first(count)) {
    fmt::print("{}  {:24} {}\n", SizeText(block.bytes), block.type, block.made_by);
  }
  if (count < alive.size()) {
    fmt::print("{}  in {} more\n", SizeText(SumOfBytes(alive.subspan(count))),
               alive.size() - count);
  }
  fmt::print("{}  in all\n", SizeText(SumOfBytes(alive)));
}

void PrintAliveJson(std::span<const LiveBlock> alive, size_t count) {
  Json list = Json::array();
  for (const LiveBlock& block : alive.first(count)) {
    list.push_back({{"bytes", block.bytes}, {"type", block.type}, {"made_by", block.made_by}});
  }
  fmt::print("{}\n", JsonText({{"alive_at_peak", list},
                               {"tensors_at_peak", alive.size()},
                               {"bytes_at_peak", SumOfBytes(alive)}}));
}

Action SetUpMemory(CLI::App& app) {
  const auto options = AddConfigOptions(app);
  struct Form {
    size_t count = 30;
    bool json = false;
  };
  const auto form = std::make_shared<Form>();
  app.add_option("--count", form->count, "How many of the tensors, the largest first")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_flag("--json", form->json, "Print JSON");
  return [options, form] {
    const auto plan = TrainingPlan::Make(LoadForModel(*options));
    const std::vector<LiveBlock> alive = AliveAtPeak(*plan);
    const size_t count = std::min(form->count, alive.size());
    form->json ? PrintAliveJson(alive, count) : PrintAlive(alive, count);
    return ExitCode::kDone;
  };
}

void PrintShare(int rank, const ShareSizes& share) {
  std::string parameters = "nothing";
  if (!share.parameters.empty()) parameters = share.parameters.front();
  if (share.parameters.size() > 1) parameters += " to " + share.parameters.back();
  fmt::print("rank {:<4} updates {:>15} elements, optimizer state {:>9}: {}\n", rank,
             WithThousands(share.updated), HumanBytes(share.optimizer_bytes), parameters);
}

// How many times the mean of the ranks the largest has to update.
double ImbalanceOf(const std::vector<ShareSizes>& shares) {
  double largest = 0, sum = 0;
  for (const ShareSizes& share : shares) {
    largest = std::max(largest, static_cast<double>(share.updated));
    sum += static_cast<double>(share.updated);
  }
  return largest * static_cast<double>(shares.size()) / sum;
}

Action SetUpShards(CLI::App& app) {
  const auto options = AddConfigOptions(app);
  const auto form = AddReportOptions(app);
  return [options, form] {
    const Config config = LoadForModel(*options);
    const auto plan = TrainingPlan::Make(config, {.ranks = form->ranks});
    const std::vector<ShareSizes> shares = SharesOf(*plan);
    Json list = Json::array();
    for (int rank = 0; rank < form->ranks; ++rank) {
      const ShareSizes& share = shares[rank];
      if (!form->json) PrintShare(rank, share);
      list.push_back({{"rank", rank},
                      {"updated", share.updated},
                      {"optimizer_bytes", share.optimizer_bytes},
                      {"parameters", share.parameters}});
    }
    const double imbalance = ImbalanceOf(shares);
    if (form->json) {
      fmt::print("{}\n", JsonText({{"shards", list}, {"imbalance", imbalance}}));
    } else if (form->ranks > 1 && config.train().sharding() == TrainConfig::NONE) {
      fmt::print("Every rank has all of it; train.sharding=OPTIMIZER_STATE shares it\n");
    } else {
      fmt::print("imbalance {:.3f} (the largest share over the mean)\n", imbalance);
    }
    return ExitCode::kDone;
  };
}

}  // namespace

Action SetUpInspect(CLI::App& app) {
  return SetUpParts(
      app,
      {{"data", "Show examples as text", SetUpData},
       {"checkpoint", "List the tensors of a checkpoint", SetUpCheckpoint},
       {"checkpoints", "List the checkpoints of a run and tell which are intact", SetUpCheckpoints},
       {"memory", "List the tensors in memory at the peak of a training step", SetUpMemory},
       {"shards", "List the parameters that each rank updates", SetUpShards}});
}

}  // namespace syntra
