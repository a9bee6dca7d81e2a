// SPDX-License-Identifier: Apache-2.0
#include "config/combinations.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/divide.h"
#include "base/text.h"
#include "config/rules.h"
#include "config/sizes.h"
#include "core/corruption_lengths.h"
#include "data/example.h"
#include "data/span_corruption.h"
#include "mixers/mixer.h"
#include "model/architecture.h"

namespace syntra {
namespace {

// Reports through the layer that is checked.
class Report {
 public:
  Report(const Layer& layer, const Location& fallback, Problems* problems)
      : layer_(layer), fallback_(fallback), problems_(problems) {}

  const Config& config() const { return layer_.config; }

  // `fields` are all that the check read; the problem is placed at the first that is set.
  void Add(const std::vector<std::string>& fields, const std::string& message) const {
    if (AnyIsBroken(fields)) return;
    const auto set = std::ranges::find_if(
        fields, [&](const auto& field) { return layer_.locations.Find(field) != nullptr; });
    const std::string& place = set == fields.end() ? fields.front() : *set;
    AddFieldProblem(layer_, fallback_, place, message, problems_);
  }

  // For the owner of the message at `path`; the report must outlive it.
  FieldReport Of(const std::string& path) const {
    return FieldReport([this](const auto& fields, const auto& message) { Add(fields, message); },
                       path);
  }

  bool AnyIsBroken(const std::vector<std::string>& fields) const {
    return std::ranges::any_of(fields, [&](const auto& field) { return layer_.IsBroken(field); });
  }

 private:
  const Layer& layer_;
  const Location& fallback_;
  Problems* problems_;
};

CorruptionLengths LongestSegment(const DataConfig& data) {
  return LengthsFor(data.input_length(), data.noise_density(), data.mean_span_length());
}

// Whether the architecture learns from corpora as data.objective says; it says nothing of tasks.
bool LearnsTheObjective(const Config& config) {
  const std::vector<DataConfig::Objective> known = ArchitectureOf(config.model()).objectives();
  return std::ranges::find(known, config.data().objective()) != known.end();
}

void ArchitectureLearnsTasks(const Report& report) {
  const ModelConfig& model = report.config().model();
  if (!HasTasks(report.config().data()) || ArchitectureOf(model).learns_tasks()) return;
  report.Add({"model.architecture", "data.task"},
             fmt::format("model.architecture {} learns no tasks; set model.architecture: "
                         "ENCODER_ONLY and model.classifier, and start from what it has learned",
                         NameOf(model.architecture())));
}

void ArchitectureLearnsTheObjective(const Report& report) {
  const Config& config = report.config();
  if (HasTasks(config.data()) || LearnsTheObjective(config)) return;
  std::vector<std::string> names;
  for (const DataConfig::Objective objective : ArchitectureOf(config.model()).objectives()) {
    names.push_back(DataConfig::Objective_Name(objective));
  }
  const std::string architecture = NameOf(config.model().architecture());
  if (names.empty()) {
    if (config.data().train_size() == 0) return;  // nothing is asked of it
    report.Add({"data.train", "model.architecture"},
               fmt::format("model.architecture {} learns no text, only tasks; list some in "
                           "data.task and run syntra finetune, or set another architecture",
                           architecture));
    return;
  }
  report.Add({"data.objective", "model.architecture"},
             fmt::format("model.architecture {} does not learn by data.objective {}; set "
                         "data.objective: {}, or another architecture",
                         architecture, DataConfig::Objective_Name(config.data().objective()),
                         Join(names, " or ")));
}

void ClassesHaveRowsOfTheirOwn(const Report& report) {
  const Config& config = report.config();
  const bool classes = ArchitectureOf(config.model()).outputs() == Outputs::kClasses;
  if (!classes || !config.data().pack()) return;
  report.Add({"data.pack", "model.architecture"},
             fmt::format("model.architecture {} gives each row one class, so rows cannot be "
                         "packed; set data.pack: false",
                         NameOf(config.model().architecture())));
}

void ModelFitsTogether(const Report& report) {
  ValidateModel(report.config().model(), report.Of("model"));
}

// The sequences that the mixers of one stack meet.
struct SequenceLength {
  int64_t length;
  std::string name, field;
};

SequenceLength LengthOf(const Config& config, Side side) {
  const DataConfig& data = config.data();
  const ExampleLengths lengths = RowLengths(data), slots = RowSlots(config);
  const std::string input_field = "data.input_length";
  const std::string inputs = fmt::format("{} {}", input_field, data.input_length());
  if (side == Side::kEncoder || IsLanguageModelling(data)) {
    return {data.input_length(), inputs, input_field};
  }
  if (slots != lengths) {
    return {slots.targets, fmt::format("the {} tokens of inputs and targets", slots.targets),
            input_field};
  }
  if (data.target_length() > 0) {
    return {slots.targets, fmt::format("data.target_length {}", slots.targets),
            "data.target_length"};
  }
  return {slots.targets,
          fmt::format("the target length {} that follows from {}", slots.targets, inputs),
          input_field};
}

// The limit of a field, and the longest sequences that the field meets.
struct MetLimit {
  LengthLimit limit;
  SequenceLength met;
};

// A field that both stacks have is told of the longer one's sequences.
void ModelTakesTheSequences(const Report& report) {
  if (report.AnyIsBroken({"data.input_length", "data.noise_density", "data.mean_span_length",
                          "data.target_length"})) {
    return;
  }
  // Another objective would make other sequences.
  if (!HasTasks(report.config().data()) && !LearnsTheObjective(report.config())) return;
  std::map<std::string, MetLimit> limits;
  for (const Side side : ArchitectureOf(report.config().model()).sides()) {
    const SequenceLength met = LengthOf(report.config(), side);
    for (const LengthLimit& limit : LengthLimitsOf(report.config().model(), side)) {
      const auto [known, fresh] = limits.emplace("model." + limit.field, MetLimit{limit, met});
      SequenceLength& longest = known->second.met;
      if (!fresh && longest.length < met.length) longest = met;
    }
  }
  for (const auto& [path, place] : limits) {
    const auto& [limit, met] = place;
    if (limit.length >= met.length) continue;
    const bool is_trained = !report.config().checkpoint().initial().empty();
    const std::string advice =
        is_trained ? fmt::format("the model that checkpoint.initial names takes no more; lower {}",
                                 met.field)
                   : fmt::format("make it at least {}, or lower {}", met.length, met.field);
    report.Add({path, met.field},
               fmt::format("{} {} is shorter than {}; {}", path, limit.value, met.name, advice));
  }
}

void MixersTakePackedRows(const Report& report) {
  if (!report.config().data().pack()) return;
  std::set<std::string> told;
  for (const Side side : ArchitectureOf(report.config().model()).sides()) {
    for (const LayerGroup& group : LayersOf(report.config().model(), side)) {
      const std::string path = "model." + group.mixer_path;
      if (MakeMixer(group.mixer)->traits().packed_rows != PackedRows::kLeaks) continue;
      if (!told.insert(path).second) continue;
      report.Add({path, "data.pack"},
                 fmt::format("{} cannot keep packed examples apart; set data.pack: false", path));
    }
  }
}

// The mask of later positions tells a position where it is, so a decoder sees order, unless its
// inputs read each other.
void OrderIsSeen(const Report& report) {
  const ModelConfig& model = report.config().model();
  if (model.has_positions()) return;
  for (const Side side : {Side::kEncoder, Side::kDecoder}) {
    if (!HasSide(model, side)) continue;
    if (side == Side::kDecoder && !model.bidirectional_prefix()) continue;
    const std::vector<LayerGroup> groups = LayersOf(model, side);
    if (std::ranges::any_of(groups, [](const LayerGroup& group) {
          return MakeMixer(group.mixer)->traits().sees_order;
        })) {
      continue;
    }
    const std::string path = "model." + groups.front().mixer_path;
    report.Add({path, "model.positions"},
               fmt::format("{} does not see the order of tokens, nor does anything else in the "
                           "{}; add e.g. model.positions {{ sinusoidal {{}} }}",
                           path, side == Side::kEncoder ? "encoder" : "bidirectional prefix"));
  }
}

void VocabularyIsEven(const Report& report) {
  const int size = report.config().model().vocabulary_size();
  if (size % 2 == 0) return;
  report.Add(
      {"model.vocabulary_size"},
      fmt::format("model.vocabulary_size {} is odd; pad it to an even size, best to a multiple "
                  "of 128 ({})",
                  size, DivideUp(int64_t{size}, 128) * 128));
}

void VocabularyHoldsSentinels(const Report& report) {
  const int size = report.config().model().vocabulary_size();
  const int sentinels = report.config().data().extra_ids();
  if (!report.config().has_data() || size > sentinels) return;
  report.Add({"model.vocabulary_size", "data.extra_ids"},
             fmt::format("model.vocabulary_size {} has no room for data.extra_ids {} and the "
                         "tokenizer's pieces; enlarge it",
                         size, sentinels));
}

// Tasks have targets of their own, whatever corpora the configuration names beside them.
bool CorruptsText(const DataConfig& data) {
  if (HasTasks(data) || data.objective() != DataConfig::SPAN_CORRUPTION) return false;
  return data.target_length() == 0 || data.train_size() > 0 || data.validation_size() > 0;
}

// `problem_of` reads these fields; it says what is wrong with the corruption of text, or nothing.
template <typename ProblemOf>
void CorruptionSucceeds(const Report& report, const std::vector<std::string>& fields,
                        const ProblemOf& problem_of) {
  const DataConfig& data = report.config().data();
  if (!CorruptsText(data) || report.AnyIsBroken(fields)) return;
  const std::string problem = problem_of(data);
  if (!problem.empty()) report.Add(fields, problem);
}

void CorruptedTargetsFit(const Report& report) {
  CorruptionSucceeds(
      report,
      {"data.target_length", "data.input_length", "data.noise_density", "data.mean_span_length"},
      [](const DataConfig& data) {
        return WhyTargetsLackRoom(RowLengths(data), LongestSegment(data));
      });
}

void SentinelsSuffice(const Report& report) {
  CorruptionSucceeds(
      report,
      {"data.input_length", "data.noise_density", "data.mean_span_length", "data.extra_ids"},
      [](const DataConfig& data) {
        return WhySentinelsLack(RowLengths(data), LongestSegment(data), data.extra_ids());
      });
}

void MicroBatchesFillTheBatch(const Report& report) {
  const TrainConfig& train = report.config().train();
  if (train.micro_batch_size() <= 0 || train.batch_size() % train.micro_batch_size() == 0) return;
  report.Add(
      {"train.micro_batch_size", "train.batch_size"},
      fmt::format("train.batch_size {} is not a multiple of train.micro_batch_size {}; use a "
                  "divisor of it",
                  train.batch_size(), train.micro_batch_size()));
}

// Otherwise the micro-batch would follow the number of ranks.
void ExactReductionFixesTheMicroBatch(const Report& report) {
  const TrainConfig& train = report.config().train();
  if (train.reduction() != TrainConfig::EXACT || train.micro_batch_size() > 0) return;
  report.Add({"train.reduction", "train.micro_batch_size"},
             fmt::format("train.reduction EXACT needs a train.micro_batch_size, the examples of "
                         "each gradient that is added; set a divisor of train.batch_size {}",
                         train.batch_size()));
}

void CrossAttentionCanBeJoined(const Report& report) {
  const ModelConfig& model = report.config().model();
  if (!report.config().train().joint_cross_attention() || HasCrossAttention(model)) return;
  report.Add(
      {"train.joint_cross_attention", "model.architecture"},
      fmt::format("train.joint_cross_attention needs cross-attention, which model.architecture "
                  "{} does not have; leave it out",
                  NameOf(model.architecture())));
}

void ScheduleFalls(const Report& report) {
  const ScheduleConfig& schedule = report.config().optimizer().schedule();
  const std::string path = "optimizer.schedule";
  if (schedule.kind() != ScheduleConfig::LINEAR && schedule.kind() != ScheduleConfig::COSINE) {
    return;
  }
  const std::string& kind = ScheduleConfig::Kind_Name(schedule.kind());
  if (schedule.final_rate() > schedule.rate()) {
    report.Add({path + ".final_rate", path + ".rate", path + ".kind"},
               fmt::format("{}.final_rate {} is above rate {}; a {} schedule falls", path,
                           schedule.final_rate(), schedule.rate(), kind));
  }
  const int64_t steps = report.config().train().steps();
  if (schedule.warmup_steps() >= steps) {
    report.Add({path + ".warmup_steps", "train.steps", path + ".kind"},
               fmt::format("{}.warmup_steps {} must be less than train.steps {} for a {} schedule",
                           path, schedule.warmup_steps(), steps, kind));
  }
}

void MilestonesAreCheckpoints(const Report& report) {
  const CheckpointConfig& checkpoint = report.config().checkpoint();
  const int64_t every = checkpoint.every(), milestone = checkpoint.milestone_every();
  if (milestone <= 0 || (every > 0 && milestone % every == 0)) return;
  report.Add(
      {"checkpoint.milestone_every", "checkpoint.every"},
      fmt::format("checkpoint.milestone_every {} is not a multiple of checkpoint.every {}, so "
                  "those steps are not saved; use a multiple",
                  milestone, every));
}

void SizesCanBeCounted(const Report& report) { CheckSizes(report.config(), report.Of("")); }

void StrategyGivesTheOutputs(const Report& report) {
  const DecodingConfig& decoding = report.config().decoding();
  const int outputs = decoding.outputs();
  const bool is_greedy =
      decoding.has_greedy() || decoding.strategy_case() == DecodingConfig::STRATEGY_NOT_SET;
  if (decoding.has_beam() && outputs > decoding.beam().size()) {
    report.Add({"decoding.outputs", "decoding.beam.size"},
               fmt::format("a beam of {} does not give {} outputs; raise decoding.beam.size or "
                           "lower decoding.outputs",
                           decoding.beam().size(), outputs));
  } else if (is_greedy && outputs > 1) {
    report.Add({"decoding.outputs"},
               fmt::format("greedy decoding gives one output, not {}; set decoding.beam or "
                           "decoding.sample",
                           outputs));
  }
}

void ProfiledStepsAreTrained(const Report& report) {
  const TrainConfig& train = report.config().train();
  if (train.profile().steps() == 0 || train.profile().first_step() <= train.steps()) return;
  report.Add({"train.profile.first_step", "train.steps", "train.profile.steps"},
             fmt::format("train.profile.first_step {} is after train.steps {}, so nothing would be "
                         "recorded; lower it",
                         train.profile().first_step(), train.steps()));
}

void SamplesAreWritten(const Report& report) {
  const Config& config = report.config();
  if (config.evaluation().samples() == 0) return;
  const char* why = nullptr;
  if (HasTasks(config.data())) {
    why = "tasks are learned; their outputs are in predictions/";
  } else if (ArchitectureOf(config.model()).outputs() != Outputs::kTokens) {
    why = "the model writes no text";
  }
  if (!why) return;
  report.Add({"evaluation.samples", "model.architecture"},
             fmt::format("evaluation.samples {} is not possible: {}; leave it out",
                         config.evaluation().samples(), why));
}

constexpr void (*kCombinations[])(const Report&) = {
    ArchitectureLearnsTasks,
    ArchitectureLearnsTheObjective,
    ModelFitsTogether,
    ModelTakesTheSequences,
    ClassesHaveRowsOfTheirOwn,
    MixersTakePackedRows,
    OrderIsSeen,
    VocabularyIsEven,
    VocabularyHoldsSentinels,
    SentinelsSuffice,
    CorruptedTargetsFit,
    MicroBatchesFillTheBatch,
    CrossAttentionCanBeJoined,
    ScheduleFalls,
    MilestonesAreCheckpoints,
    ExactReductionFixesTheMicroBatch,
    SizesCanBeCounted,
    StrategyGivesTheOutputs,
    ProfiledStepsAreTrained,
    SamplesAreWritten,
};

}  // namespace

void CheckCombinations(const Layer& layer, const Location& fallback, Problems* problems) {
  const Report report(layer, fallback, problems);
  for (const auto& check : kCombinations) check(report);
}

}  // namespace syntra
