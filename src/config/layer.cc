// SPDX-License-Identifier: Apache-2.0
#include "config/layer.h"

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

}  // namespace

const Location* FieldLocations::Find(const std::string& path) const {
  const auto it = places_.find(path);
  return it == places_.end() ? nullptr : &it->second;
}

const Location* FieldLocations::Nearest(std::string path) const {
  for (;;) {
    if (const Location* where = Find(path)) return where;
    const size_t end = path.find_last_of(".[");
    if (end == std::string::npos) return nullptr;
    path.resize(end);
  }
}

void FieldLocations::EraseTree(const std::string& path) {
  std::erase_if(places_, [&](const auto& place) { return IsInside(place.first, path); });
}

void FieldLocations::MergeFrom(const FieldLocations& other) {
  for (const auto& [path, where] : other.places_) places_[path] = where;
}

void FieldLocations::CopyTree(const FieldLocations& other, const std::string& path) {
  for (const auto& [inner, where] : other.places_) {
    if (IsInside(inner, path)) places_[inner] = where;
  }
}

bool Layer::IsBroken(const std::string& path) const {
  for (const std::string& field : broken) {
    if (IsInside(path, field) || IsInside(field, path)) return true;
  }
  return false;
}

void MergeLayer(const Layer& upper, Layer* lower) {
  ClearReplaced(upper.config, upper.locations, "", &lower->config, &lower->locations);
  lower->config.MergeFrom(upper.config);
  lower->locations.MergeFrom(upper.locations);
  lower->broken.insert(upper.broken.begin(), upper.broken.end());
}

}  // namespace syntra
