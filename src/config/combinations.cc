// SPDX-License-Identifier: Apache-2.0
#include "config/combinations.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "config/rules.h"
#include "core/corruption_lengths.h"
#include "mixers/mixer.h"
#include "mixers/relative_bias.h"

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
    if (std::ranges::any_of(fields, [&](const auto& field) { return layer_.IsBroken(field); })) {
      return;
    }
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

  bool IsBroken(const std::string& field) const { return layer_.IsBroken(field); }

 private:
  const Layer& layer_;
  const Location& fallback_;
  Problems* problems_;
};

// A mixer of the model: where it is set, and the longest sequence that it meets.
struct MixerPlace {
  std::string path;
  const MixerConfig& config;
  int length;
  std::string length_name, length_field;
};

CorruptionLengths LongestSegment(const DataConfig& data) {
  return LengthsFor(data.input_length(), data.noise_density(), data.mean_span_length());
}

int TargetLength(const DataConfig& data) {
  const int64_t length =
      data.target_length() > 0 ? data.target_length() : LongestSegment(data).targets;
  return static_cast<int>(length);
}

template <typename Check>
void ForEachMixer(const Report& report, Check check) {
  const ModelConfig& model = report.config().model();
  if (report.IsBroken("data.input_length") || report.IsBroken("data.noise_density") ||
      report.IsBroken("data.mean_span_length") || report.IsBroken("data.target_length")) {
    return;
  }
  const int inputs = report.config().data().input_length();
  const int targets = TargetLength(report.config().data());
  const bool follows = report.config().data().target_length() == 0;
  const std::string input_field = "data.input_length";
  const std::string target_field = follows ? input_field : "data.target_length";
  const std::string input_name = fmt::format("{} {}", input_field, inputs);
  const std::string target_name =
      fmt::format("{} {}", follows ? "the target length" : target_field, targets);
  const bool shared = !model.has_decoder_mixer();
  check(MixerPlace{"model.mixer", model.mixer(), shared ? std::max(inputs, targets) : inputs,
                   shared && targets > inputs ? target_name : input_name,
                   shared && targets > inputs ? target_field : input_field});
  if (shared) return;
  check(MixerPlace{"model.decoder_mixer", model.decoder_mixer(), targets,
                   target_name + (follows ? fmt::format(" that follows from {}", input_name) : ""),
                   target_field});
}

void MixersNameTheirKind(const Report& report) {
  const ModelConfig& model = report.config().model();
  const auto check = [&](bool set, const MixerConfig& mixer, const std::string& path) {
    if (set && mixer.kind_case() == MixerConfig::KIND_NOT_SET) {
      report.Add({path}, fmt::format("{} names no kind; write e.g. {} {{ attention {{}} }}", path,
                                     path.substr(path.find('.') + 1)));
    }
  };
  check(model.has_mixer(), model.mixer(), "model.mixer");
  check(model.has_decoder_mixer(), model.decoder_mixer(), "model.decoder_mixer");
}

void MixersKeepTheirRules(const Report& report) {
  const ModelConfig& model = report.config().model();
  MakeMixer(model.mixer())->Validate(report.Of("model.mixer"));
  if (!model.has_decoder_mixer()) return;
  MakeMixer(model.decoder_mixer())->Validate(report.Of("model.decoder_mixer"));
}

void MixersTakeTheSequence(const Report& report) {
  ForEachMixer(report, [&](const MixerPlace& place) {
    for (const LengthLimit& limit : MakeMixer(place.config)->traits().limits) {
      if (limit.length >= place.length) continue;
      const std::string path = FieldPath(place.path, limit.field);
      report.Add({path, place.length_field},
                 fmt::format("{} {} is shorter than {}; make it at least {}, or lower {}", path,
                             limit.value, place.length_name, place.length, place.length_field));
    }
  });
}

void VocabularyIsEven(const Report& report) {
  const int size = report.config().model().vocabulary_size();
  if (size % 2 == 0) return;
  report.Add(
      {"model.vocabulary_size"},
      fmt::format("model.vocabulary_size {} is odd; pad it to an even size, best to a multiple "
                  "of 128 ({})",
                  size, (int64_t{size} + 127) / 128 * 128));
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

void RelativeBiasBuckets(const Report& report) {
  ValidateRelativeBias(report.config().model().relative_bias(), report.Of("model.relative_bias"));
}

// Tasks have targets of their own, whatever corpora the configuration names beside them.
bool CorruptsText(const DataConfig& data) {
  if (data.task_size() > 0) return false;
  return data.target_length() == 0 || data.train_size() > 0 || data.validation_size() > 0;
}

void CorruptedTargetsFit(const Report& report) {
  const std::vector<std::string> fields = {"data.target_length", "data.input_length",
                                           "data.noise_density", "data.mean_span_length"};
  if (std::ranges::any_of(fields, [&](const auto& field) { return report.IsBroken(field); })) {
    return;
  }
  const DataConfig& data = report.config().data();
  const int64_t targets = LongestSegment(data).targets;
  if (!CorruptsText(data) || TargetLength(data) >= targets) return;
  report.Add(fields, fmt::format("data.target_length {} has no room for the {} targets that span "
                                 "corruption makes of data.input_length {}; leave it out, and it "
                                 "follows from the input length",
                                 data.target_length(), targets, data.input_length()));
}

void SentinelsSuffice(const Report& report) {
  const std::vector<std::string> fields = {"data.input_length", "data.noise_density",
                                           "data.mean_span_length", "data.extra_ids"};
  if (!CorruptsText(report.config().data())) return;
  if (std::ranges::any_of(fields, [&](const auto& field) { return report.IsBroken(field); })) {
    return;
  }
  const DataConfig& data = report.config().data();
  const CorruptionLengths lengths = LongestSegment(data);
  if (lengths.spans > data.extra_ids()) {
    report.Add(fields,
               fmt::format("data.input_length {} is corrupted in {} spans, but data.extra_ids "
                           "gives {} sentinels; set extra_ids to at least {}, or shorten "
                           "the input",
                           data.input_length(), lengths.spans, data.extra_ids(), lengths.spans));
  }
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
               fmt::format("{}.warmup_steps {} leaves no step to fall in train.steps {}; lower it "
                           "for a {} schedule",
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

// Far above what any machine can train, and far below where sizes could no longer be counted.
constexpr int64_t kMostTokens = int64_t{1} << 30;
constexpr double kMostActivations = 0x1p50;

struct LengthField {
  const char* field;
  int64_t length;
};

// Targets that follow from the inputs are about as long at most.
LengthField LongerSide(const DataConfig& data) {
  if (data.target_length() > data.input_length()) {
    return {"data.target_length", data.target_length()};
  }
  return {"data.input_length", data.input_length()};
}

void TokensCanBeCounted(const Report& report) {
  const LengthField longer = LongerSide(report.config().data());
  const auto check = [&](const char* field, int64_t rows) {
    const int64_t tokens = rows * longer.length;
    if (tokens <= kMostTokens) return;
    report.Add({field, longer.field},
               fmt::format("{} {} of {} {} gives {} tokens; at most {} are allowed", field, rows,
                           longer.field, longer.length, WithThousands(tokens),
                           WithThousands(kMostTokens)));
  };
  check("train.batch_size", report.config().train().batch_size());
  check("evaluation.batch_size", report.config().evaluation().batch_size());
}

// What the layers hold for every token; fields by whole path.
std::vector<TokenVector> VectorsOfAToken(const ModelConfig& model) {
  const CrossAttentionConfig& cross = model.cross_attention();
  std::vector<TokenVector> vectors = {
      {model.width(), {"model.width"}},
      {model.feed_forward().width(), {"model.feed_forward.width"}},
      {int64_t{cross.heads()} * cross.head_size(),
       {"model.cross_attention.heads", "model.cross_attention.head_size"}}};
  const auto add = [&](const MixerConfig& mixer, const std::string& path) {
    for (TokenVector& vector : MakeMixer(mixer)->traits().per_token) {
      for (std::string& field : vector.fields) field = FieldPath(path, field);
      vectors.push_back(std::move(vector));
    }
  };
  add(model.mixer(), "model.mixer");
  if (model.has_decoder_mixer()) add(model.decoder_mixer(), "model.decoder_mixer");
  return vectors;
}

void ActivationsCanBeCounted(const Report& report) {
  const Config& config = report.config();
  const int64_t layers = int64_t{config.model().encoder_layers()} + config.model().decoder_layers();
  const bool cut = config.train().micro_batch_size() > 0;
  const int64_t rows = cut ? config.train().micro_batch_size() : config.train().batch_size();
  const LengthField longer = LongerSide(config.data());
  const double tokens = static_cast<double>(rows) * static_cast<double>(longer.length);
  const std::vector<TokenVector> vectors = VectorsOfAToken(config.model());
  const TokenVector& widest = *std::ranges::max_element(vectors, {}, &TokenVector::elements);
  if (tokens * static_cast<double>(widest.elements) * static_cast<double>(layers) <=
      kMostActivations) {
    return;
  }
  std::vector<std::string> fields = widest.fields;
  const std::string rows_field = cut ? "train.micro_batch_size" : "train.batch_size";
  for (const char* field : {longer.field, "model.encoder_layers", "model.decoder_layers"}) {
    fields.push_back(field);
  }
  fields.push_back(rows_field);
  report.Add(fields, fmt::format("{} {} of {} {} in {} layers with {} elements a token ({}) are "
                                 "more than 2^50 values; lower one of them",
                                 rows_field, rows, longer.field, longer.length, layers,
                                 WithThousands(widest.elements), Join(widest.fields, ", ")));
}

void StrategyGivesTheOutputs(const Report& report) {
  const DecodingConfig& decoding = report.config().decoding();
  const int outputs = decoding.outputs();
  if (decoding.has_sample()) return;
  if (decoding.has_beam() && outputs > decoding.beam().size()) {
    report.Add({"decoding.outputs", "decoding.beam.size"},
               fmt::format("a beam of {} does not give {} outputs; raise decoding.beam.size or "
                           "lower decoding.outputs",
                           decoding.beam().size(), outputs));
  } else if (!decoding.has_beam() && outputs > 1) {
    report.Add({"decoding.outputs"},
               fmt::format("greedy decoding gives one output, not {}; set decoding.beam or "
                           "decoding.sample",
                           outputs));
  }
}

constexpr void (*kCombinations[])(const Report&) = {
    MixersNameTheirKind, MixersKeepTheirRules,     MixersTakeTheSequence,
    VocabularyIsEven,    VocabularyHoldsSentinels, RelativeBiasBuckets,
    SentinelsSuffice,    CorruptedTargetsFit,      MicroBatchesFillTheBatch,
    ScheduleFalls,       MilestonesAreCheckpoints, ExactReductionFixesTheMicroBatch,
    TokensCanBeCounted,  ActivationsCanBeCounted,  StrategyGivesTheOutputs,
};

}  // namespace

void CheckCombinations(const Layer& layer, const Location& fallback, Problems* problems) {
  const Report report(layer, fallback, problems);
  for (const auto& check : kCombinations) check(report);
}

}  // namespace syntra
