// The documentation of the schema, from its comments.
#pragma once

#include <string>

namespace syntra {

// What the field at a dotted path (list indices left out) is: type, default, rule, allowed values
// or inner fields, and the schema's comment. A bare name stands for every field of that name.
// Throws Error(kConfig) with a suggestion if there is none.
std::string ExplainField(const std::string& path);

}  // namespace syntra
