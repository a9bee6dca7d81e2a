// SPDX-License-Identifier: Apache-2.0
// The layers of a model as its configuration lists them, in either of two forms: a number of equal
// layers, or one group after another.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/field_report.h"
#include "configs/schema/config.pb.h"
#include "mixers/mixer.h"

namespace syntra {

enum class Side { kEncoder, kDecoder };

// "encoder" or "decoder".
const char* NameOf(Side side);

// Layers of a stack, one after another, that are alike.
struct LayerGroup {
  int64_t repeat = 1;
  MixerConfig mixer;
  FeedForwardConfig feed_forward;
  std::string weights;  // groups of this name share their parameters; empty: no layers do
  std::optional<RecurrenceConfig> recurrence;  // the layers are steps of one
  // Where the fields are, inside ModelConfig.
  std::string repeat_path, mixer_path, feed_forward_path, weights_path, recurrence_path;

  // Where the message of the mixer's kind is, inside ModelConfig.
  std::string mixer_kind_path() const { return FieldPath(mixer_path, MixerKind(mixer)); }
};

// At least one group where the architecture has the stack, else none. A group of a valid model has
// 1 to 256 layers.
std::vector<LayerGroup> LayersOf(const ModelConfig& model, Side side);

// The limits on the length of the stack's sequences, which come from the tables of its mixers and
// of learned positions. The fields are paths inside ModelConfig; a limit that several groups have
// is listed once.
std::vector<LengthLimit> LengthLimitsOf(const ModelConfig& model, Side side);

int64_t LayerCount(const ModelConfig& model, Side side);

// An encoder-decoder without lists, if its layers are all alike in each stack and share nothing;
// else the model as it is.
ModelConfig ShortForm(const ModelConfig& model);

// The model, written so that each listed layer names its mixer and its feed-forward network.
ModelConfig WithNamedSublayers(const ModelConfig& model);

// The layers that the model lists; none in the short form.
std::vector<LayerConfig*> ListedLayers(ModelConfig* model);

// Reports what makes the model impossible: settings that its mixers refuse, and mixers, layers and
// stacks that do not fit together. `report` is that of ModelConfig.
void ValidateModel(const ModelConfig& model, const FieldReport& report);

}  // namespace syntra
