// SPDX-License-Identifier: Apache-2.0
// The product's side of the finetuning benchmark (tests/bench/finetune): evaluations of a
// checkpoint on its task, or training steps on a task's examples, one for each line of standard
// input. Prints a line of JSON when it is ready, one for each line, and a summary.
#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/checkpoint_options.h"
#include "cli/run_config.h"
#include "core/thread.h"
#include "data/with_eos.h"
#include "dist/self.h"
#include "tests/bench/timed_lines.h"
#include "train/answers.h"
#include "train/initial.h"
#include "train/run_tokenizer.h"
#include "train/step.h"
#include "train/task_data.h"
#include "train/threads.h"

namespace syntra {
namespace {

// What `syntra finetune` does to evaluate a model on the validation split of its task.
void Evaluate(const CheckpointOptions& options) {
  LoadedModel loaded = options.Load({.tokenizer = true});
  const Config& config = loaded.config;
  ChooseThreads(config.train());
  const Tokenizer& tokenizer = *loaded.tokenizer;
  std::vector<TaskData> tasks;
  tasks.push_back({.task = std::move(MakeTasks(config.data()).front())});
  const Task& task = *tasks.front().task;
  const auto split =
      std::ranges::find(task.traits().splits, TaskSplit::Use::kValidation, &TaskSplit::use);
  const std::vector<TaskExample> examples = ReadSplit(task, *split, TaskFolderOf(config.data()));
  BatchDecoder decoder(loaded.replica->trained(), tokenizer,
                       {.decoding = config.decoding(),
                        .input_length = config.data().input_length(),
                        .output_length = RowLengths(config.data()).targets});
  SelfCommunicator alone;
  Answerer answerer(loaded.replica->trained(), tokenizer, config, tasks, alone);

  std::vector<DecodeRequest> requests;
  Json inputs = Json::array(), outputs = Json::array();
  for (const TaskExample& example : examples) {
    requests.push_back(
        {IdsWithEos(tokenizer, example.inputs, decoder.settings().input_length), {}});
    inputs.push_back(requests.back().ids);
  }
  const std::vector<Hypotheses> decoded = decoder.Decode(requests);
  for (const Hypotheses& output : decoded) outputs.push_back(output.front().ids);
  PrintLine({{"ready", true},
             {"threads", ThreadCount()},
             {"parameters", loaded.replica->parameters().element_count()},
             {"longest", RowLengths(config.data()).targets},
             {"inputs", inputs},
             {"outputs", outputs}});
  Answers answers;
  TimeEachLine([&] { answers = *answerer.Answer(task, examples, [] { return false; }); });
  size_t different = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    // Answers that are wrong whatever follows end there.
    const std::string whole = tokenizer.Decode(decoded[i].front().ids);
    different += !whole.starts_with(answers[i].text);
  }
  // The batches are others, so by rounding an output may be another one here and there.
  SYNTRA_CHECK(100 * different <= answers.size(), "{} of {} answers", different, answers.size());
  PrintLine(PeakMemory());
}

// The examples of a batch, [[inputs, targets], ..]: those that share a row apart.
Json ExamplesOf(const Batch& batch) {
  Json examples = Json::array();
  for (int64_t row = 0; row < batch.rows; ++row) {
    for (int32_t segment = 1;; ++segment) {
      const auto of_segment = [&](const std::vector<int32_t>& ids,
                                  const std::vector<int32_t>& segments, int64_t length) {
        std::vector<int32_t> taken;
        for (int64_t i = row * length; i < (row + 1) * length; ++i) {
          if (segments[i] == segment) taken.push_back(ids[i]);
        }
        return taken;
      };
      const auto inputs =
          of_segment(batch["encoder_ids"], batch["encoder_segments"], batch.input_length);
      if (inputs.empty()) break;
      examples.push_back(
          {inputs, of_segment(batch["targets"], batch["decoder_segments"], batch.target_length)});
    }
  }
  return examples;
}

struct StepOptions {
  std::shared_ptr<ConfigOptions> config;
  std::string initial;
  int64_t steps = 10;
};

// Steps of `syntra finetune`, without the files of a run. Batches are made before.
void Train(const StepOptions& options) {
  LoadedRun start = LoadForFinetuning(*options.config, {.initial = options.initial});
  const Config& config = start.config;
  ChooseThreads(config.train());
  const Tokenizer tokenizer = OpenTokenizer(config, start.initial);
  const uint64_t seed = config.train().seed();
  const TrainingData data(FinetuningData::Read(config, tokenizer).training,
                          RowPacking::OfExamples(config.data(), SeparateRows()), seed);
  Replica replica(TrainingPlan::Make(config), 0);
  replica.InitializeParameters(seed);
  RunIdentity identity{.tokenizer_identity = tokenizer.identity()};
  LoadInitial(*start.initial, config.checkpoint(), replica, &identity);
  SelfCommunicator alone;
  StepRunner runner(replica, alone);

  std::vector<std::vector<Batch>> batches;
  Json examples = Json::array(), slots = Json::array();
  for (int64_t step = 0; step < options.steps; ++step) batches.push_back(runner.Fetch(data, step));
  const auto bind_start = Clock::now();
  for (const std::vector<Batch>& step : batches) runner.Flops(step);
  const double bind_seconds = SecondsSince(bind_start);
  for (const std::vector<Batch>& step : batches) {
    Json of_step = Json::array();
    int64_t inputs = 0;
    for (const Batch& batch : step) {
      for (Json& example : ExamplesOf(batch)) of_step.push_back(std::move(example));
      inputs += batch.rows * (batch.input_length + batch.target_length);
    }
    examples.push_back(of_step);
    slots.push_back(inputs);
  }
  int64_t step = 0;
  Json losses = Json::array();
  const auto run = [&] {
    SYNTRA_CHECK(step < options.steps, "only {} steps", options.steps);
    const StepResult result = runner.Run(batches[step], step, {});
    losses.push_back(result.sums.PerToken());
    ++step;
  };
  run();
  PrintLine({{"ready", true},
             {"threads", ThreadCount()},
             {"parameters", replica.parameters().element_count()},
             {"bind_seconds", bind_seconds},
             {"slots", slots},
             {"examples", examples}});
  TimeEachLine(run);
  Json summary = PeakMemory();
  summary["losses"] = losses;
  PrintLine(summary);
}

int Main(int argc, char** argv) {
  CLI::App app("Evaluations and training steps of finetuning, timed");
  app.require_subcommand(1);
  CLI::App* evaluate = app.add_subcommand("evaluate", "An evaluation for each line");
  const auto checkpoint = AddCheckpointOptions(*evaluate);
  CLI::App* train = app.add_subcommand("train", "A training step for each line");
  StepOptions options{.config = AddConfigOptions(*train)};
  train->add_option("--init-from", options.initial, "The model to start from")->required();
  train->add_option("--steps", options.steps, "Steps to prepare for, the first included");
  CLI11_PARSE(app, argc, argv);
  return EndedBy([&] { *evaluate ? Evaluate(*checkpoint) : Train(options); });
}

}  // namespace
}  // namespace syntra

int main(int argc, char** argv) { return syntra::Main(argc, argv); }
