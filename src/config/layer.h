// SPDX-License-Identifier: Apache-2.0
// One layer of configuration: the fields that a file or an override sets, and where it sets them.
#pragma once

#include <google/protobuf/message.h>

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/field_report.h"
#include "config/problem.h"
#include "configs/schema/config.pb.h"

namespace syntra {

// Where each field was set, by path.
class FieldLocations {
 public:
  void Set(const std::string& path, const Location& where) { places_[path] = where; }
  const Location* Find(const std::string& path) const;
  // The place of the field or, if it is not set, of the innermost message around it that is.
  const Location* Nearest(std::string path) const;
  // Forgets the field and all that is inside it.
  void EraseTree(const std::string& path);
  void MergeFrom(const FieldLocations& other);
  // Takes over what `other` knows of the field and all that is inside it.
  void CopyTree(const FieldLocations& other, const std::string& path);

 private:
  std::map<std::string, Location> places_;
};

struct Layer {
  Config config;
  FieldLocations locations;
  // Fields with errors: what depends on them cannot be judged.
  std::set<std::string> broken;

  bool IsBroken(const std::string& path) const;
};

// Lays `upper` over `lower`: scalars and lists replace, messages merge, another member of a oneof
// replaces the one that was set.
void MergeLayer(const Layer& upper, Layer* lower);

}  // namespace syntra
