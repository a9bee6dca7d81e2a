// SPDX-License-Identifier: Apache-2.0
#include "config/unread.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/field_report.h"
#include "configs/schema/defaults.h"
#include "data/example.h"
#include "mixers/mixer.h"
#include "model/architecture.h"

namespace syntra {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// The rule of a message that may lie in several places, as those of mixers do.
template <typename Owner>
UnreadRule UnreadIn(std::string field, bool (*unread)(const Owner&), std::string why) {
  return {Owner::descriptor(), std::move(field),
          [unread](const Message& owner, const Message&) {
            return unread(static_cast<const Owner&>(owner));
          },
          std::move(why)};
}

UnreadRule Unread(std::string path, bool (*unread)(const Config&), std::string why) {
  return UnreadIn<Config>(std::move(path), unread, std::move(why));
}

template <typename Holds>
bool HoldsForAllLayers(const ModelConfig& model, const Holds& holds) {
  return std::ranges::all_of(ArchitectureOf(model).sides(), [&](Side side) {
    return std::ranges::all_of(LayersOf(model, side), holds);
  });
}

bool NoLayerHas(const Config& config, std::string LayerGroup::*path, const char* field) {
  return HoldsForAllLayers(config.model(),
                           [&](const LayerGroup& group) { return group.*path != field; });
}

// A mixer that only says what attention is anyway is no setting; its rate may be what
// model.attention_dropout stands for.
bool NoLayerHasTheMixer(const Config& config) {
  const MixerConfig& mixer = config.model().mixer();
  AttentionConfig said = mixer.attention();
  said.clear_dropout();
  if (mixer.has_attention() && said.ByteSizeLong() == 0) return false;
  return NoLayerHas(config, &LayerGroup::mixer_path, "mixer");
}

bool NoLayerHasTheDecoderMixer(const Config& config) {
  return NoLayerHas(config, &LayerGroup::mixer_path, "decoder_mixer");
}

bool NoLayerHasTheNetwork(const Config& config) {
  return NoLayerHas(config, &LayerGroup::feed_forward_path, "feed_forward");
}

bool NoLayerAddsTheBias(const Config& config) {
  return HoldsForAllLayers(config.model(), [](const LayerGroup& group) {
    return MakeMixer(group.mixer)->traits().bias_heads == 0;
  });
}

bool DropsNothing(const Config& config) { return config.model().dropout() == 0; }

// Terms with tables read positions if those are the index.
bool HasNoTable(const AttentionConfig& attention) {
  MixerConfig mixer;
  *mixer.mutable_attention() = attention;
  mixer.mutable_attention()->set_index_by(AttentionConfig::SEGMENT_POSITION);
  return !MakeMixer(mixer)->traits().reads_positions;
}

// Of a LayerConfig in a StackConfig.
bool SharesWithNone(const Message& owner, const Message& around) {
  const auto& layer = static_cast<const LayerConfig&>(owner);
  const auto& stack = static_cast<const StackConfig&>(around);
  return layer.repeat() == 1 &&
         std::ranges::count(stack.layers(), layer.weights(), &LayerConfig::weights) == 1;
}

bool HasNoWindow(const AttentionFreeConfig& config) { return config.window() == 0; }

bool LearnsTasks(const Config& config) { return HasTasks(config.data()); }
bool LearnsText(const Config& config) { return !LearnsTasks(config); }
bool LearnsOneTask(const Config& config) { return config.data().task_size() < 2; }

// The targets of tasks are as long as those of span corruption, unless a length is given.
bool CorruptsNoSpans(const Config& config) {
  if (LearnsTasks(config)) return config.data().target_length() > 0;
  return config.data().objective() != DataConfig::SPAN_CORRUPTION;
}

bool MasksNothing(const Config& config) {
  const bool masks = LearnsText(config) && config.data().objective() == DataConfig::MASKED_LM;
  return CorruptsNoSpans(config) && !masks;
}

bool HasTargetsAsLongAsInputs(const Config& config) {
  return LearnsText(config) && CorruptsNoSpans(config);
}

bool SkipsNoRecord(const Config& config) {
  return config.data().on_bad_record() == DataConfig::FAIL;
}

bool IsAdafactor(const Config& config) {
  return config.optimizer().kind() == OptimizerConfig::ADAFACTOR;
}
bool IsNotAdafactor(const Config& config) { return !IsAdafactor(config); }

bool EndsAtNoRate(const Config& config) {
  const ScheduleConfig::Kind kind = config.optimizer().schedule().kind();
  return kind != ScheduleConfig::LINEAR && kind != ScheduleConfig::COSINE;
}

bool RecordsNoStep(const Config& config) { return config.train().profile().steps() == 0; }

bool EvaluatesNothing(const Config& config) {
  return LearnsText(config) && config.data().validation_size() == 0;
}

bool WritesNoText(const Config& config) {
  return ArchitectureOf(config.model()).outputs() != Outputs::kTokens;
}

// Whether the message has the field at a path below it, or something inside it.
bool Has(const Message& message, const std::string& path) {
  const size_t dot = path.find('.');
  const FieldDescriptor* field = message.GetDescriptor()->FindFieldByName(path.substr(0, dot));
  SYNTRA_CHECK(field, "{} has no field {}", message.GetTypeName(), path);
  const auto& reflection = *message.GetReflection();
  if (field->is_repeated()) return reflection.FieldSize(message, field) > 0;
  if (!reflection.HasField(message, field)) return false;
  return dot == std::string::npos ||
         Has(reflection.GetMessage(message, field), path.substr(dot + 1));
}

// Calls visit(message, around, path) for the message and all that are set inside it; `around` is
// the message that it lies in.
template <typename Visit>
void VisitMessages(const Message& message, const Message& around, const std::string& path,
                   const Visit& visit) {
  visit(message, around, path);
  const auto& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (!field->message_type()) continue;
    const std::string at = FieldPath(path, field->name());
    if (!field->is_repeated()) {
      VisitMessages(reflection.GetMessage(message, field), message, at, visit);
    }
    for (int i = 0; field->is_repeated() && i < reflection.FieldSize(message, field); ++i) {
      VisitMessages(reflection.GetRepeatedMessage(message, field, i), message, ElementPath(at, i),
                    visit);
    }
  }
}

}  // namespace

const std::vector<UnreadRule>& UnreadRules() {
  const std::string tasks = "tasks are learned, which have data of their own";
  const std::string no_tasks = "no tasks are learned";
  const std::string adafactor = "ADAFACTOR does not use it", adam = "only ADAFACTOR uses it";
  const std::string own = "every layer names its own", window = "window is 0";
  const std::string off = "train.profile.steps is 0";
  static const std::vector<UnreadRule> rules = {
      Unread("model.mixer", NoLayerHasTheMixer, own),
      Unread("model.decoder_mixer", NoLayerHasTheDecoderMixer, own),
      Unread("model.feed_forward", NoLayerHasTheNetwork, own),
      Unread("model.relative_bias", NoLayerAddsTheBias, "no mixer adds it"),
      Unread("model.dropout_noise", DropsNothing, "model.dropout is 0"),
      UnreadIn("index_by", HasNoTable, "no term has a table over positions"),
      {LayerConfig::descriptor(), "weights", SharesWithNone,
       "no other layer of the stack has them"},
      UnreadIn("max_length", HasNoWindow, window),
      UnreadIn("rank", HasNoWindow, window),
      Unread("data.objective", LearnsTasks, tasks),
      Unread("data.train", LearnsTasks, tasks),
      Unread("data.validation", LearnsTasks, tasks),
      Unread("data.prepared", LearnsTasks, tasks),
      Unread("data.text_field", LearnsTasks, tasks),
      Unread("data.documents_per_group", LearnsTasks, tasks),
      Unread("data.noise_density", MasksNothing, "nothing is masked"),
      Unread("data.mean_span_length", CorruptsNoSpans, "no spans are masked"),
      Unread("data.target_length", HasTargetsAsLongAsInputs,
             "only tasks and SPAN_CORRUPTION have it"),
      Unread("data.max_bad_fraction", SkipsNoRecord, "data.on_bad_record is FAIL"),
      Unread("data.directory", LearnsText, no_tasks),
      Unread("data.mixture", LearnsOneTask, "there are no tasks to mix"),
      Unread("optimizer.beta1", IsAdafactor, adafactor),
      Unread("optimizer.beta2", IsAdafactor, adafactor),
      Unread("optimizer.epsilon", IsAdafactor, adafactor),
      Unread("optimizer.weight_decay", IsAdafactor, adafactor),
      Unread("optimizer.decay_exponent", IsNotAdafactor, adam),
      Unread("optimizer.clip_threshold", IsNotAdafactor, adam),
      Unread("optimizer.min_factored_size", IsNotAdafactor, adam),
      Unread("optimizer.schedule.final_rate", EndsAtNoRate, "only LINEAR and COSINE end at it"),
      Unread("train.max_rollbacks", LearnsTasks, "finetuning never goes back"),
      Unread("train.profile.first_step", RecordsNoStep, off),
      Unread("train.profile.ops", RecordsNoStep, off),
      Unread("evaluation", EvaluatesNothing, "there is no data.validation"),
      Unread("evaluation.batches", LearnsTasks, "tasks are judged on evaluation.examples"),
      Unread("evaluation.rank_classification", LearnsText, no_tasks),
      Unread("evaluation.examples", LearnsText, no_tasks),
      Unread("decoding", WritesNoText, "the model writes no text"),
  };
  return rules;
}

std::vector<std::string> UnreadSettings(const Config& config) {
  Config said = config;
  RemoveDefaults(&said);
  std::vector<std::string> lines;
  const auto visit = [&](const Message& message, const Message& around, const std::string& path) {
    for (const UnreadRule& rule : UnreadRules()) {
      if (rule.owner != message.GetDescriptor() || !Has(message, rule.field)) continue;
      if (!rule.unread(message, around)) continue;
      lines.push_back(fmt::format("{} has no effect: {}", FieldPath(path, rule.field), rule.why));
    }
  };
  VisitMessages(said, said, "", visit);
  return lines;
}

}  // namespace syntra
