// SPDX-License-Identifier: Apache-2.0
// One layer of configuration: the fields that a file or an override sets, and where it sets them.
#pragma once

#include <google/protobuf/message.h>

#include <map>
#include <set>
#include <string>

#include "base/field_report.h"
#include "config/problem.h"
#include "configs/schema/config.pb.h"

namespace syntra {

// Where each field was set, by path.
class FieldLocations {
 public:
  void Set(const std::string& path, const Location& where);
  // Records the place of a message on the way to a field that an override sets. The override says
  // nothing of the message's other fields.
  void SetOnTheWay(const std::string& path, const Location& where) { places_[path] = where; }
  const Location* Find(const std::string& path) const;
  // The place of the field or, if it is not set, of the innermost message around it that is.
  const Location* Nearest(const std::string& path) const;
  // Where a field that lacks a value should have had one: its place or, if it is not set, where the
  // innermost message around it was first written.
  const Location* PlaceOfMissing(const std::string& path) const;
  // Forgets the field and all that is inside it.
  void EraseTree(const std::string& path);
  void MergeFrom(const FieldLocations& other);
  // Copies the places of the field and of everything inside it from `other`.
  void CopyTree(const FieldLocations& other, const std::string& path);

 private:
  using Places = std::map<std::string, Location>;

  static const Location* NearestIn(const Places& places, std::string path);

  Places places_;  // of each field the last
  Places first_;   // of each the first that was not on the way to another
};

struct Layer {
  Config config;
  FieldLocations locations;
  // Fields with errors; checks that depend on them are left out.
  std::set<std::string> broken;

  bool IsBroken(const std::string& path) const;
};

// Lays `upper` over `lower`: scalars and lists replace, messages merge, another member of a oneof
// replaces the one that was set. model.attention_dropout replaces every rate that it stands for.
void MergeLayer(const Layer& upper, Layer* lower);

// Lays `upper` over `lower`, two messages of a kind that lie at `path`, in the same way, and the
// places of their fields, too.
void MergeMessage(const google::protobuf::Message& upper, const FieldLocations& upper_locations,
                  const std::string& path, google::protobuf::Message* lower,
                  FieldLocations* locations);

// Clears model.attention_dropout and sets what it stands for: `dropout` of every kind of attention
// that does not set its own. To be called once all layers are merged.
void SpreadAttentionDropout(ModelConfig* model);

}  // namespace syntra
