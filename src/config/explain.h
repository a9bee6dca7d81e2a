// The documentation of the schema, from its comments.
#pragma once

#include <string>
#include <vector>

namespace syntra {

// What the field at a dotted path (list indices are ignored) is: type, default, rule, allowed
// values or inner fields, and the schema's comment. A bare name stands for every field of that
// name. Throws Error(kConfig) with a suggestion if there is none.
std::string ExplainField(const std::string& place);

// Paths of all fields that `--set path=value` can change, in schema order.
std::vector<std::string> SettableFields();

}  // namespace syntra
