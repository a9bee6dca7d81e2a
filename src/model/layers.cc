// SPDX-License-Identifier: Apache-2.0
#include "model/layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "configs/schema/defaults.h"
#include "mixers/relative_bias.h"
#include "model/architecture.h"
#include "model/positions.h"

namespace syntra {
namespace {

// A layer that names no mixer has this one.
struct DefaultMixer {
  const MixerConfig& config;
  const char* path;
};

DefaultMixer DefaultMixerOf(const ModelConfig& model, Side side) {
  if (side == Side::kDecoder && model.has_decoder_mixer()) {
    return {model.decoder_mixer(), "decoder_mixer"};
  }
  return {model.mixer(), "mixer"};
}

LayerGroup GroupOf(const ModelConfig& model, Side side, const LayerConfig& layers,
                   const std::string& path) {
  const DefaultMixer mixer = DefaultMixerOf(model, side);
  const bool own_mixer = layers.has_mixer(), own_network = layers.has_feed_forward();
  return {.repeat = layers.repeat(),
          .mixer = own_mixer ? layers.mixer() : mixer.config,
          .feed_forward = own_network ? layers.feed_forward() : model.feed_forward(),
          .weights = layers.weights(),
          .recurrence = layers.has_recurrence() ? std::optional(layers.recurrence()) : std::nullopt,
          .repeat_path = FieldPath(path, "repeat"),
          .mixer_path = own_mixer ? FieldPath(path, "mixer") : mixer.path,
          .feed_forward_path = own_network ? FieldPath(path, "feed_forward") : "feed_forward",
          .weights_path = FieldPath(path, "weights"),
          .recurrence_path = FieldPath(path, "recurrence")};
}

// Equal for messages that say the same, whichever of their defaults they write out.
template <typename Message>
std::string MeaningOf(Message message) {
  RemoveDefaults(&message);
  return message.SerializeAsString();
}

bool IsAlike(const LayerGroup& a, const LayerGroup& b) {
  const auto mixing = [](MixerConfig mixer) {
    MutableAttention(&mixer);  // what a mixer is that names no kind
    return MeaningOf(mixer);
  };
  return mixing(a.mixer) == mixing(b.mixer) &&
         MeaningOf(a.feed_forward) == MeaningOf(b.feed_forward);
}

void CheckNamesItsKind(const MixerConfig& mixer, const FieldReport& at) {
  if (mixer.kind_case() != MixerConfig::KIND_NOT_SET) return;
  const std::string& path = at.path();
  at.Add({path}, fmt::format("{} names no kind; write e.g. {} {{ attention {{}} }}", path,
                             path.substr(path.rfind('.') + 1)));
}

void CheckListsLayers(const ModelConfig& model, Side side, const FieldReport& report) {
  const bool lists = side == Side::kEncoder ? model.has_encoder() : model.has_decoder();
  const StackConfig& stack = side == Side::kEncoder ? model.encoder() : model.decoder();
  if (!lists || stack.layers_size() > 0) return;
  const std::string path = report.Path(NameOf(side));
  report.Add({path}, fmt::format("{} lists no layers; write e.g. {} {{ layers {{ repeat: 6 }} }}",
                                 path, NameOf(side)));
}

// Every message once, although several groups may have it.
void CheckMixers(const ModelConfig& model, const FieldReport& report) {
  std::map<std::string, MixerConfig> by_path;
  if (model.has_mixer()) by_path.emplace("mixer", model.mixer());
  if (model.has_decoder_mixer()) by_path.emplace("decoder_mixer", model.decoder_mixer());
  for (const Side side : ArchitectureOf(model).sides()) {
    for (const LayerGroup& group : LayersOf(model, side)) {
      if (group.mixer_path != "mixer") by_path.emplace(group.mixer_path, group.mixer);
    }
  }
  for (const auto& [path, mixer] : by_path) {
    const FieldReport at = report / path;
    CheckNamesItsKind(mixer, at);
    const std::unique_ptr<TokenMixer> made = MakeMixer(mixer);
    const FieldReport settings = at / MixerKind(mixer);
    made->Validate(settings);
    const WidthDivisor divisor = made->traits().width_divisor;
    // A field beyond its own limits is reported elsewhere.
    if (divisor.value < 1 || model.width() % divisor.value == 0) continue;
    const std::string width = report.Path("width"), field = settings.Path(divisor.field);
    report.Add({field, width}, fmt::format("{} {} does not divide {} {}; choose one that does",
                                           field, divisor.value, width, model.width()));
  }
}

void CheckDecoderIsCausal(const ModelConfig& model, const FieldReport& report) {
  const char* others = HasSide(model, Side::kEncoder) ? "decoder_mixer" : "mixer";
  for (const LayerGroup& group : LayersOf(model, Side::kDecoder)) {
    if (MakeMixer(group.mixer)->traits().causal) continue;
    const std::string path = report.Path(group.mixer_path);
    report.Add({path}, fmt::format("{} is not causal, so the decoder cannot use it; "
                                   "set another in {} or in the decoder's layers",
                                   path, others));
  }
}

void CheckPrefixIsBidirectional(const ModelConfig& model, const FieldReport& report) {
  if (!model.bidirectional_prefix()) return;
  for (const LayerGroup& group : LayersOf(model, Side::kDecoder)) {
    if (MakeMixer(group.mixer)->traits().bidirectional_prefix) continue;
    const std::string path = report.Path(group.mixer_path),
                      prefix = report.Path("bidirectional_prefix");
    report.Add(
        {path, prefix},
        fmt::format("{} cannot let inputs read what comes after them; use attention, or leave "
                    "out {}: then they read from left to right",
                    path, prefix));
  }
}

void CheckArchitectureHasFields(const ModelConfig& model, const FieldReport& report) {
  const google::protobuf::Descriptor& fields = *model.GetDescriptor();
  for (const std::string& name : ArchitectureOf(model).foreign_fields()) {
    if (!model.GetReflection()->HasField(model, fields.FindFieldByName(name))) continue;
    const std::string path = report.Path(name), architecture = report.Path("architecture");
    report.Add({path, architecture}, fmt::format("{} means nothing with {} {}; leave it out", path,
                                                 architecture, NameOf(model.architecture())));
  }
}

// The stack has one table of relative bias for all layers that add it.
void CheckBiasHeads(const ModelConfig& model, Side side, const FieldReport& report) {
  int64_t heads = 0;
  std::string first;
  for (const LayerGroup& group : LayersOf(model, side)) {
    const int64_t here = MakeMixer(group.mixer)->traits().bias_heads;
    if (here == 0 || here == heads) continue;
    const std::string path = report.Path(group.mixer_path);
    if (heads == 0) {
      heads = here;
      first = path;
      continue;
    }
    report.Add({path}, fmt::format("{} has {} heads, but the {}'s relative bias has the {} of {}; "
                                   "give it as many, or set its relative_bias: false",
                                   path, here, NameOf(side), heads, first));
  }
}

void CheckSharedWeights(const ModelConfig& model, Side side, const FieldReport& report) {
  const std::vector<LayerGroup> groups = LayersOf(model, side);
  std::map<std::string, const LayerGroup*> by_name;
  for (const LayerGroup& group : groups) {
    if (group.weights.empty()) continue;
    const auto [first, fresh] = by_name.emplace(group.weights, &group);
    if (fresh || IsAlike(group, *first->second)) continue;
    const std::string path = report.Path(group.weights_path);
    report.Add({path}, fmt::format("{}: layers of the weights \"{}\" must be alike, but this mixer "
                                   "or feed_forward is not that of {}; use another name",
                                   path, group.weights, report.Path(first->second->weights_path)));
  }
}

void CheckRecurrences(const ModelConfig& model, Side side, const FieldReport& report) {
  const std::string width = report.Path("width");
  for (const LayerGroup& group : LayersOf(model, side)) {
    if (!group.recurrence) continue;
    const std::string path = report.Path(group.recurrence_path);
    if (group.recurrence->step_signal() == RecurrenceConfig::SINUSOIDAL && model.width() % 2 != 0) {
      report.Add({width, path}, fmt::format("{} {} is odd, but {}'s step_signal SINUSOIDAL has a "
                                            "sine and a cosine of each wavelength; make it even",
                                            width, model.width(), path));
    }
  }
}

}  // namespace

const char* NameOf(Side side) { return side == Side::kEncoder ? "encoder" : "decoder"; }

std::vector<LayerGroup> LayersOf(const ModelConfig& model, Side side) {
  if (!HasSide(model, side)) return {};
  const bool encoder = side == Side::kEncoder;
  const std::string name = NameOf(side);
  const StackConfig& stack = encoder ? model.encoder() : model.decoder();
  std::vector<LayerGroup> groups;
  groups.reserve(stack.layers_size());
  for (int i = 0; i < stack.layers_size(); ++i) {
    groups.push_back(GroupOf(model, side, stack.layers(i), ElementPath(name + ".layers", i)));
  }
  if (!groups.empty()) return groups;
  LayerGroup all = GroupOf(model, side, {}, "");
  all.repeat = encoder ? model.encoder_layers() : model.decoder_layers();
  all.repeat_path = name + "_layers";
  return {all};
}

std::vector<LengthLimit> LengthLimitsOf(const ModelConfig& model, Side side) {
  std::map<std::string, LengthLimit> limits;
  for (const LayerGroup& group : LayersOf(model, side)) {
    for (LengthLimit limit : MakeMixer(group.mixer)->traits().limits) {
      limit.field = FieldPath(group.mixer_kind_path(), limit.field);
      limits.emplace(limit.field, limit);
    }
  }
  if (model.positions().has_learned()) {
    const int32_t length = model.positions().learned().max_length();
    const std::string field = "positions.learned.max_length";
    limits.emplace(field, LengthLimit{length, field, std::to_string(length)});
  }
  std::vector<LengthLimit> list;
  list.reserve(limits.size());
  for (auto& [field, limit] : limits) list.push_back(std::move(limit));
  return list;
}

int64_t LayerCount(const ModelConfig& model, Side side) {
  int64_t count = 0;
  for (const LayerGroup& group : LayersOf(model, side)) count += group.repeat;
  return count;
}

ModelConfig ShortForm(const ModelConfig& model) {
  if (!HasCrossAttention(model)) return model;
  if (!model.has_encoder() && !model.has_decoder()) return model;
  const std::vector<LayerGroup> encoder = LayersOf(model, Side::kEncoder),
                                decoder = LayersOf(model, Side::kDecoder);
  const auto uniform = [](const std::vector<LayerGroup>& groups) {
    return std::ranges::all_of(groups, [&](const LayerGroup& group) {
      return group.weights.empty() && !group.recurrence && IsAlike(group, groups[0]);
    });
  };
  const bool one_network = MeaningOf(encoder[0].feed_forward) == MeaningOf(decoder[0].feed_forward);
  if (!uniform(encoder) || !uniform(decoder) || !one_network) return model;
  ModelConfig alike = model;
  alike.set_encoder_layers(static_cast<int>(LayerCount(model, Side::kEncoder)));
  alike.set_decoder_layers(static_cast<int>(LayerCount(model, Side::kDecoder)));
  *alike.mutable_mixer() = encoder[0].mixer;
  *alike.mutable_decoder_mixer() = decoder[0].mixer;
  *alike.mutable_feed_forward() = encoder[0].feed_forward;
  return alike;
}

ModelConfig WithNamedSublayers(const ModelConfig& model) {
  ModelConfig named = model;
  const auto name = [](const std::vector<LayerGroup>& groups, StackConfig* stack) {
    for (int i = 0; i < stack->layers_size(); ++i) {
      *stack->mutable_layers(i)->mutable_mixer() = groups[i].mixer;
      *stack->mutable_layers(i)->mutable_feed_forward() = groups[i].feed_forward;
    }
  };
  if (named.has_encoder()) name(LayersOf(model, Side::kEncoder), named.mutable_encoder());
  if (named.has_decoder()) name(LayersOf(model, Side::kDecoder), named.mutable_decoder());
  return named;
}

std::vector<LayerConfig*> ListedLayers(ModelConfig* model) {
  std::vector<LayerConfig*> layers;
  const auto add = [&](StackConfig* stack) {
    for (LayerConfig& layer : *stack->mutable_layers()) layers.push_back(&layer);
  };
  if (model->has_encoder()) add(model->mutable_encoder());
  if (model->has_decoder()) add(model->mutable_decoder());
  return layers;
}

void ValidateModel(const ModelConfig& model, const FieldReport& report) {
  CheckArchitectureHasFields(model, report);
  CheckMixers(model, report);
  if (HasCrossAttention(model)) {
    MakeCrossMixer(model.cross_attention())->Validate(report / "cross_attention");
  }
  CheckDecoderIsCausal(model, report);
  CheckPrefixIsBidirectional(model, report);
  for (const Side side : ArchitectureOf(model).sides()) {
    CheckListsLayers(model, side, report);
    CheckBiasHeads(model, side, report);
    CheckSharedWeights(model, side, report);
    CheckRecurrences(model, side, report);
  }
  ValidatePositions(model, report);
  ValidateRelativeBias(model.relative_bias(), report / "relative_bias");
}

}  // namespace syntra
