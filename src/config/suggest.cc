#include "config/suggest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "base/text.h"
#include "config/layer.h"
#include "config/problem.h"

namespace syntra {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;

// Long names are as hopeless as they are slow to compare.
constexpr size_t kLongestName = 64;

// As fields are written: "--Batch-Size" is asked for as batch_size.
std::string Normalized(std::string_view name) {
  std::string text;
  for (const unsigned char c : name.substr(0, kLongestName + 1)) {
    text += c == '-' ? '_' : static_cast<char>(std::tolower(c));
  }
  return text;
}

template <typename Visit>
void ForEachField(const Descriptor& message, const std::string& path, const Visit& visit) {
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    const std::string field_path = FieldPath(path, field.name());
    visit(field, field_path);
    if (field.message_type()) ForEachField(*field.message_type(), field_path, visit);
  }
}

std::vector<std::string> NamesOf(const FieldDescriptor& field) {
  std::vector<std::string> names = {field.name()};
  const auto& options = field.options();
  for (int i = 0; i < options.ExtensionSize(syntra::synonym); ++i) {
    names.push_back(options.GetExtension(syntra::synonym, i));
  }
  return names;
}

// The candidate nearest in spelling, unless so much of it differs that chance explains the rest.
std::string Misspelt(const std::string& name, const std::vector<std::string>& candidates,
                     size_t letters_an_edit) {
  if (name.size() > kLongestName) return "";
  const std::string nearest = NearestName(name, candidates);
  const size_t edits = static_cast<size_t>(EditDistance(name, nearest));
  return edits * letters_an_edit < std::max(name.size(), nearest.size()) ? nearest : "";
}

std::string MisspeltHere(const Descriptor& message, const std::string& name) {
  std::vector<std::string> names;
  for (int i = 0; i < message.field_count(); ++i) names.push_back(message.field(i)->name());
  return Misspelt(name, names, 2);
}

// Fields called almost `name` anywhere.
std::vector<std::string> MisspeltElsewhere(const std::string& name) {
  std::set<std::string> names;
  ForEachField(*Config::descriptor(), "", [&](const FieldDescriptor& field, const std::string&) {
    for (const std::string& each : NamesOf(field)) names.insert(each);
  });
  const std::string nearest = Misspelt(name, {names.begin(), names.end()}, 4);
  return nearest.empty() ? std::vector<std::string>() : FieldsCalled(nearest);
}

// Of `paths` those inside `owner`, written with its indices; all if none is inside.
std::vector<std::string> NearestTo(const std::string& owner, std::vector<std::string> paths) {
  const std::string inside = WithoutIndices(owner) + ".";
  std::vector<std::string> nearest;
  for (const std::string& path : paths) {
    if (path.starts_with(inside)) nearest.push_back(FieldPath(owner, path.substr(inside.size())));
  }
  return nearest.empty() ? paths : nearest;
}

}  // namespace

std::string WithoutIndices(const std::string& path) {
  std::string text;
  bool in_index = false;
  for (const char c : path) {
    if (c == '[') in_index = true;
    if (!in_index) text += c;
    if (c == ']') in_index = false;
  }
  return text;
}

std::vector<std::string> FieldsCalled(std::string_view name) {
  const std::string wanted = Normalized(name);
  std::vector<std::string> paths;
  ForEachField(*Config::descriptor(), "",
               [&](const FieldDescriptor& field, const std::string& path) {
                 if (std::ranges::count(NamesOf(field), wanted) > 0) paths.push_back(path);
               });
  return paths;
}

std::vector<std::string> MeantFields(const UnknownField& unknown) {
  if (unknown.name.empty()) return {};
  const std::string name = Normalized(unknown.name);
  const std::vector<std::string> at_end =
      unknown.last.empty() ? std::vector<std::string>() : FieldsCalled(unknown.last);
  if (at_end.size() == 1) return at_end;
  std::vector<std::string> paths = NearestTo(unknown.owner, FieldsCalled(name));
  if (!paths.empty()) return paths;
  const std::string here = MisspeltHere(unknown.message, name);
  if (!here.empty()) return {FieldPath(unknown.owner, here)};
  return at_end.empty() ? NearestTo(unknown.owner, MisspeltElsewhere(name)) : at_end;
}

std::string UnknownFieldMessage(const UnknownField& unknown) {
  std::vector<std::string> meant = MeantFields(unknown);
  for (std::string& path : meant) {
    const size_t dot = path.rfind('.');
    const bool is_here = dot != std::string::npos && path.substr(0, dot) == unknown.owner;
    path = fmt::format("\"{}\"", is_here ? path.substr(dot + 1) : path);
  }
  std::string hint;
  if (!meant.empty()) {
    const std::string last = meant.back();
    meant.pop_back();
    hint =
        fmt::format("; did you mean {}{}{}?", Join(meant, ", "), meant.empty() ? "" : " or ", last);
  }
  return fmt::format("{} has no field {}{}",
                     unknown.owner.empty() ? "the configuration" : unknown.owner,
                     Quoted(unknown.name), hint);
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
