// SPDX-License-Identifier: Apache-2.0
#include "config/suggest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <set>

#include "base/field_report.h"
#include "base/text.h"
#include "config/problem.h"
#include "configs/schema/config.pb.h"
#include "configs/schema/kind_of.h"

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

// A field of the configuration, with its name and its synonyms.
struct NamedField {
  std::string path;
  // The path with the name of the choice in the place of each kind that it goes through: equal for
  // fields that are alike in several kinds of mixers.
  std::string alike;
  const FieldDescriptor* field;
  std::vector<std::string> names;
  int depth = 0;  // names of the path, without those of kinds
};

void Collect(const Descriptor& message, const NamedField& owner, std::vector<NamedField>* fields) {
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    const auto* choice = field.message_type() ? field.real_containing_oneof() : nullptr;
    NamedField named{FieldPath(owner.path, field.name()),
                     FieldPath(owner.alike, choice ? choice->name() : field.name()), &field,
                     OtherNames(field), owner.depth + (choice ? 0 : 1)};
    named.names.push_back(field.name());
    fields->push_back(named);
    if (field.message_type()) Collect(*field.message_type(), named, fields);
  }
}

const std::vector<NamedField>& NamedFields() {
  static const std::vector<NamedField> fields = [] {
    std::vector<NamedField> list;
    Collect(*Config::descriptor(), {}, &list);
    return list;
  }();
  return fields;
}

std::vector<NamedField> Called(std::string_view name) {
  const std::string wanted = Normalized(name);
  std::vector<NamedField> fields;
  for (const NamedField& field : NamedFields()) {
    if (std::ranges::count(field.names, wanted) > 0) fields.push_back(field);
  }
  return fields;
}

// Keeps, of fields that are alike in several kinds, only that of the first kind, which is the usual
// one.
std::vector<NamedField> OfUsualKinds(std::vector<NamedField> fields) {
  std::set<std::string> known;
  std::erase_if(fields, [&](const NamedField& field) { return !known.insert(field.alike).second; });
  return fields;
}

// The paths of each field in the place where it lies the least deep, those of the least deep fields
// first. A message may lie in many places: for instance once for all layers, and once for each
// layer of a list.
std::vector<std::string> Shallowest(std::vector<NamedField> fields) {
  std::ranges::stable_sort(fields, {}, &NamedField::depth);
  const auto depth = [](const NamedField& field) { return std::ranges::count(field.path, '.'); };
  std::map<const FieldDescriptor*, int64_t> least;
  for (const NamedField& named : fields) {
    const auto [known, fresh] = least.emplace(named.field, depth(named));
    if (!fresh) known->second = std::min<int64_t>(known->second, depth(named));
  }
  std::vector<std::string> paths;
  for (const NamedField& named : fields) {
    if (depth(named) == least.at(named.field)) paths.push_back(named.path);
  }
  return paths;
}

// The candidate nearest in spelling, unless it differs so much that the similarity may be chance.
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
std::vector<NamedField> MisspeltElsewhere(const std::string& name) {
  constexpr size_t kLettersAnEdit = 4;
  // Names whose lengths already differ by too much are not compared: a file that is no
  // configuration has thousands of unknown names.
  const auto similar = [&](const std::string& other) {
    const size_t longer = std::max(name.size(), other.size());
    return (longer - std::min(name.size(), other.size())) * kLettersAnEdit < longer;
  };
  std::set<std::string> names;
  for (const NamedField& field : NamedFields()) {
    std::ranges::copy_if(field.names, std::inserter(names, names.end()), similar);
  }
  const std::string nearest = Misspelt(name, {names.begin(), names.end()}, kLettersAnEdit);
  return nearest.empty() ? std::vector<NamedField>() : Called(nearest);
}

// The fields of `fields` that are inside `owner`, written with its indices, unless there are too
// many to read. If none is inside, the shallowest fields; of similar ones then only that of the
// usual kind.
std::vector<std::string> NearestTo(const std::string& owner,
                                   const std::vector<NamedField>& fields) {
  constexpr size_t kMostNamed = 6;
  const std::string prefix = WithoutIndices(owner) + ".";
  std::vector<NamedField> inside;
  std::ranges::copy_if(fields, std::back_inserter(inside),
                       [&](const NamedField& field) { return field.path.starts_with(prefix); });
  if (inside.empty()) return Shallowest(OfUsualKinds(fields));
  std::vector<std::string> nearest;
  if (inside.size() > kMostNamed) {
    nearest = Shallowest(OfUsualKinds(inside));
  } else {
    for (const NamedField& field : inside) nearest.push_back(field.path);
  }
  for (std::string& path : nearest) path = FieldPath(owner, path.substr(prefix.size()));
  return nearest;
}

// "; it has cola, sst2, ..." of a message that is a choice of kinds: where nothing tells what was
// meant, one of these was.
std::string KindsIn(const Descriptor& message) {
  if (!IsChoice(message)) return "";
  std::vector<std::string> names;
  for (int i = 0; i < message.field_count(); ++i) names.push_back(message.field(i)->name());
  return "; it has " + Join(names, ", ");
}

bool IsCalled(const Counterpart& counterpart, const std::string& name) {
  return std::ranges::count(counterpart.name(), name) > 0;
}

}  // namespace

std::string NoteOf(const std::string& path, std::string_view name) {
  const auto named = std::ranges::find(NamedFields(), WithoutIndices(path), &NamedField::path);
  if (named == NamedFields().end()) return "";
  for (const Counterpart& each : Counterparts(*named->field)) {
    if (IsCalled(each, Normalized(name))) return fmt::format(" ({})", each.note());
  }
  return "";
}

std::vector<std::string> Synonyms(const FieldDescriptor& field) {
  std::vector<std::string> names;
  for (int k = 0; k < field.options().ExtensionSize(syntra::synonym); ++k) {
    names.push_back(field.options().GetExtension(syntra::synonym, k));
  }
  return names;
}

std::vector<Counterpart> Counterparts(const FieldDescriptor& field) {
  std::vector<Counterpart> list;
  for (int k = 0; k < field.options().ExtensionSize(syntra::counterpart); ++k) {
    list.push_back(field.options().GetExtension(syntra::counterpart, k));
  }
  return list;
}

std::vector<std::string> OtherNames(const FieldDescriptor& field) {
  std::vector<std::string> names = Synonyms(field);
  for (const Counterpart& each : Counterparts(field)) {
    names.insert(names.end(), each.name().begin(), each.name().end());
  }
  return names;
}

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

std::vector<std::string> FieldsCalled(std::string_view name) { return Shallowest(Called(name)); }

std::vector<std::string> FieldsMeant(std::string_view name) {
  if (std::ranges::count(NamedFields(), name, &NamedField::path) > 0) return {std::string(name)};
  std::vector<std::string> paths = Shallowest(OfUsualKinds(Called(name)));
  const auto depth = [](const std::string& path) { return std::ranges::count(path, '.'); };
  const auto least = std::ranges::min_element(paths, {}, depth);
  if (least == paths.end()) return paths;
  std::erase_if(paths, [&, most = depth(*least)](const auto& path) { return depth(path) > most; });
  return paths;
}

std::vector<std::string> MeantFields(const UnknownField& unknown) {
  if (unknown.name.empty()) return {};
  const std::string name = Normalized(unknown.name);
  const std::vector<std::string> at_end = unknown.last.empty()
                                              ? std::vector<std::string>()
                                              : Shallowest(OfUsualKinds(Called(unknown.last)));
  if (at_end.size() == 1) return at_end;
  std::vector<std::string> paths = NearestTo(unknown.owner, Called(name));
  const std::string here = MisspeltHere(unknown.message, name);
  if (!paths.empty()) {
    // One edit away, such as a plural, unless it is a synonym.
    const std::string path = FieldPath(unknown.owner, here);
    const bool is_close = !here.empty() && EditDistance(name, here) == 1;
    if (is_close && std::ranges::count(paths, path) == 0) paths.insert(paths.begin(), path);
    return paths;
  }
  if (!here.empty()) return {FieldPath(unknown.owner, here)};
  return at_end.empty() ? NearestTo(unknown.owner, MisspeltElsewhere(name)) : at_end;
}

std::string UnknownFieldMessage(const UnknownField& unknown, std::vector<std::string> meant) {
  for (std::string& path : meant) {
    const size_t dot = path.rfind('.');
    const bool is_here = dot != std::string::npos && path.substr(0, dot) == unknown.owner;
    path =
        fmt::format("\"{}\"{}", is_here ? path.substr(dot + 1) : path, NoteOf(path, unknown.name));
  }
  std::string hint = meant.empty() ? KindsIn(unknown.message) : "";
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
  for (int i = 0; i < type.options().ExtensionSize(syntra::left_out); ++i) {
    const Counterpart& each = type.options().GetExtension(syntra::left_out, i);
    if (!IsCalled(each, upper)) continue;
    return fmt::format("{} is not one of {}: {}", Quoted(name), Join(names, ", "), each.note());
  }
  return fmt::format("{} is not one of {}{}", Quoted(name), Join(names, ", "),
                     DidYouMean(upper, names));
}

}  // namespace syntra
