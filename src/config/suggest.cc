#include "config/suggest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "config/layer.h"
#include "config/problem.h"

namespace syntra {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;

void CollectPaths(const Descriptor& message, const std::string& path, std::string_view name,
                  std::vector<std::string>* paths) {
  for (int i = 0; i < message.field_count(); ++i) {
    const auto* field = message.field(i);
    const std::string field_path = FieldPath(path, field->name());
    if (field->name() == name) paths->push_back(field_path);
    if (field->message_type()) CollectPaths(*field->message_type(), field_path, name, paths);
  }
}

// Long names are as hopeless as they are slow to compare.
constexpr size_t kLongestName = 64;

}  // namespace

std::vector<std::string> PathsOfField(std::string_view name) {
  std::vector<std::string> paths;
  CollectPaths(*Config::descriptor(), "", name, &paths);
  return paths;
}

std::string NearestField(const Descriptor& message, std::string_view name) {
  if (name.size() > kLongestName) return "";
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  std::vector<std::string> names;
  for (int i = 0; i < message.field_count(); ++i) names.push_back(message.field(i)->name());
  return NearestName(lower, names);
}

std::string UnknownFieldMessage(const Descriptor& message, const std::string& path,
                                std::string_view name) {
  const std::string owner = path.empty() ? "the configuration" : path;
  const std::string nearest = NearestField(message, name);
  std::string hint;
  if (nearest.empty() || EditDistance(name, nearest) > 2) {
    const std::vector<std::string> elsewhere =
        name.size() > kLongestName ? std::vector<std::string>() : PathsOfField(name);
    if (!elsewhere.empty()) hint = fmt::format("; there is {}", elsewhere.front());
  }
  if (hint.empty() && !nearest.empty()) hint = fmt::format("; did you mean \"{}\"?", nearest);
  return fmt::format("{} has no field {}{}", owner, Quoted(name), hint);
}

std::string UnknownValueMessage(const EnumDescriptor& type, std::string_view name) {
  std::vector<std::string> names;
  for (int i = 0; i < type.value_count(); ++i) names.push_back(type.value(i)->name());
  std::string upper(name.substr(0, kLongestName));
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  return fmt::format("{} is not one of {}{}", Quoted(name), Join(names, ", "),
                     DidYouMean(upper, names));
}

}  // namespace syntra
