// SPDX-License-Identifier: Apache-2.0
#include "config/layer.h"

#include "mixers/mixer.h"
#include "model/architecture.h"

namespace syntra {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::OneofDescriptor;
using google::protobuf::Reflection;

bool IsInside(std::string_view path, std::string_view tree) {
  return path.starts_with(tree) &&
         (path.size() == tree.size() || path[tree.size()] == '.' || path[tree.size()] == '[');
}

// Removes from `lower` what protobuf's merge would append to (lists), and the places of what it
// drops.
void ClearReplaced(const Message& upper, const FieldLocations& upper_locations,
                   const std::string& path, Message* lower, FieldLocations* locations) {
  const Reflection& reflection = *upper.GetReflection();
  for (int i = 0; i < upper.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = upper.GetDescriptor()->field(i);
    const std::string field_path = FieldPath(path, field->name());
    if (field->is_repeated()) {
      // An empty list is set too, so the place decides.
      if (!upper_locations.Find(field_path)) continue;
      reflection.ClearField(lower, field);
      locations->EraseTree(field_path);
      continue;
    }
    if (!reflection.HasField(upper, field)) continue;
    if (const OneofDescriptor* oneof = field->containing_oneof()) {
      const FieldDescriptor* old = reflection.GetOneofFieldDescriptor(*lower, oneof);
      if (old && old != field) locations->EraseTree(FieldPath(path, old->name()));
    }
    if (field->message_type() && reflection.HasField(*lower, field)) {
      ClearReplaced(reflection.GetMessage(upper, field), upper_locations, field_path,
                    reflection.MutableMessage(lower, field), locations);
    }
  }
}

// Calls visit(message, field, path) for the `dropout` of every kind of attention that the model
// names, set or not. It is the rate of attention's weights wherever a mixer has a field of the
// name.
template <typename Visit>
void ForEachAttentionDropout(ModelConfig* model, Visit visit) {
  const auto visit_in = [&](Message* owner, const std::string& path) {
    const FieldDescriptor* field = owner->GetDescriptor()->FindFieldByName("dropout");
    if (field) visit(owner, field, FieldPath(path, field->name()));
  };
  const auto visit_kind = [&](MixerConfig* mixer, const std::string& path) {
    const Reflection& reflection = *mixer->GetReflection();
    const OneofDescriptor* kinds = mixer->GetDescriptor()->FindOneofByName("kind");
    const FieldDescriptor* kind = reflection.GetOneofFieldDescriptor(*mixer, kinds);
    if (kind) visit_in(reflection.MutableMessage(mixer, kind), FieldPath(path, kind->name()));
  };
  const auto visit_layers = [&](StackConfig* stack, const std::string& path) {
    for (int i = 0; i < stack->layers_size(); ++i) {
      if (!stack->layers(i).has_mixer()) continue;
      visit_kind(stack->mutable_layers(i)->mutable_mixer(), ElementPath(path, i) + ".mixer");
    }
  };
  if (model->has_mixer()) visit_kind(model->mutable_mixer(), "model.mixer");
  if (model->has_decoder_mixer()) visit_kind(model->mutable_decoder_mixer(), "model.decoder_mixer");
  if (model->has_encoder()) visit_layers(model->mutable_encoder(), "model.encoder.layers");
  if (model->has_decoder()) visit_layers(model->mutable_decoder(), "model.decoder.layers");
  if (model->has_cross_attention()) {
    visit_in(model->mutable_cross_attention(), "model.cross_attention");
  }
}

void ClearAttentionDropout(Layer* layer) {
  ForEachAttentionDropout(
      layer->config.mutable_model(),
      [&](Message* owner, const FieldDescriptor* field, const std::string& path) {
        owner->GetReflection()->ClearField(owner, field);
        layer->locations.EraseTree(path);
      });
}

}  // namespace

const Location* FieldLocations::Find(const std::string& path) const {
  const auto it = places_.find(path);
  return it == places_.end() ? nullptr : &it->second;
}

void FieldLocations::Set(const std::string& path, const Location& where) {
  places_[path] = where;
  first_.emplace(path, where);
}

const Location* FieldLocations::Nearest(const std::string& path) const {
  return NearestIn(places_, path);
}

const Location* FieldLocations::PlaceOfMissing(const std::string& path) const {
  const Location* own = Find(path);
  return own ? own : NearestIn(first_, path);
}

const Location* FieldLocations::NearestIn(const Places& places, std::string path) {
  for (;;) {
    if (const auto it = places.find(path); it != places.end()) return &it->second;
    const size_t end = path.find_last_of(".[");
    if (end == std::string::npos) return nullptr;
    path.resize(end);
  }
}

void FieldLocations::EraseTree(const std::string& path) {
  const auto is_inside = [&](const auto& place) { return IsInside(place.first, path); };
  std::erase_if(places_, is_inside);
  std::erase_if(first_, is_inside);
}

void FieldLocations::MergeFrom(const FieldLocations& other) {
  for (const auto& [path, where] : other.places_) places_[path] = where;
  first_.insert(other.first_.begin(), other.first_.end());
}

void FieldLocations::CopyTree(const FieldLocations& other, const std::string& path) {
  for (const auto& [inner, where] : other.places_) {
    if (IsInside(inner, path)) places_[inner] = where;
  }
  for (const auto& [inner, where] : other.first_) {
    if (IsInside(inner, path)) first_.emplace(inner, where);
  }
}

bool Layer::IsBroken(const std::string& path) const {
  for (const std::string& field : broken) {
    if (IsInside(path, field) || IsInside(field, path)) return true;
  }
  return false;
}

void MergeLayer(const Layer& upper, Layer* lower) {
  if (upper.config.model().has_attention_dropout()) ClearAttentionDropout(lower);
  MergeMessage(upper.config, upper.locations, "", &lower->config, &lower->locations);
  lower->broken.insert(upper.broken.begin(), upper.broken.end());
}

void MergeMessage(const Message& upper, const FieldLocations& upper_locations,
                  const std::string& path, Message* lower, FieldLocations* locations) {
  ClearReplaced(upper, upper_locations, path, lower, locations);
  lower->MergeFrom(upper);
  locations->MergeFrom(upper_locations);
}

void SpreadAttentionDropout(ModelConfig* model) {
  const double rate = model->attention_dropout();
  model->clear_attention_dropout();
  if (rate == 0) return;
  MutableAttention(model->mutable_mixer());  // a field for the rate where no mixer is named
  if (HasCrossAttention(*model)) model->mutable_cross_attention();
  ForEachAttentionDropout(model, [&](Message* owner, const FieldDescriptor* field, const auto&) {
    const Reflection& reflection = *owner->GetReflection();
    if (!reflection.HasField(*owner, field)) reflection.SetDouble(owner, field, rate);
  });
}

}  // namespace syntra
