// SPDX-License-Identifier: Apache-2.0
// The documentation of the schema, from its comments.
#pragma once

#include <string>
#include <vector>

namespace syntra {

// Describes the field at a dotted path (list indices are ignored): its type, default, rule, the
// schema's comment, its synonyms, what a continued run does with another value, and the allowed
// values or the tree of its fields. A bare name stands for every field with that name or synonym:
// the first four are explained, the others listed.
// Throws Error(kConfig) with a suggestion if there is none.
std::string ExplainField(const std::string& place);

// The tree of all fields: name, type, default and first sentence, in 80 columns.
std::string ExplainAll();

// A field outside lists.
struct FieldPlace {
  std::string path;
  bool settable;                    // by `--set path=value`
  std::vector<std::string> values;  // of an enum or a bool; else none
};

// In schema order.
std::vector<FieldPlace> AllFields();

}  // namespace syntra
