// SPDX-License-Identifier: Apache-2.0
// Mistakes generated for every field of the schema: each must be refused at its place.
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <regex>

#include "config/scalar.h"
#include "errors.h"

namespace syntra {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

// A scalar field and the text around it: "model { " ... " }".
struct Place {
  const FieldDescriptor* field;
  std::string before;
  std::string after;
  std::string path;  // without list indices
};

void Collect(const Descriptor& message, const Place& outer, std::vector<Place>* places) {
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor* field = message.field(i);
    Place place = outer;
    place.field = field;
    place.path += (place.path.empty() ? "" : ".") + field->name();
    if (!field->message_type()) {
      places->push_back(place);
    } else {
      place.before += field->name() + " {\n";
      place.after += " }";
      Collect(*field->message_type(), place, places);
    }
  }
}

std::vector<Place> AllPlaces() {
  std::vector<Place> places;
  Collect(*Config::descriptor(), {}, &places);
  return places;
}

// A value that every rule allows.
std::string GoodValue(const FieldDescriptor* field) {
  const auto* prototype =
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(field->containing_type());
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) return "\"a\"";
  return ScalarToText(*prototype, field);
}

// Expects an error of "name: value" at the field's line that contains `text`.
void ExpectRefused(const Place& place, const std::string& name, const std::string& value,
                   const std::string& text) {
  const std::string source = place.before + name + ": " + value + place.after;
  const auto lines = ErrorLines(source);
  const int line = static_cast<int>(Split(place.before, '\n').size());
  const std::string where = "error: x:" + std::to_string(line) + ":";
  for (const std::string& error : lines) {
    if (error.starts_with(where) && error.find(text) != std::string::npos) return;
  }
  ADD_FAILURE() << source << "\nexpected " << where << " with " << text << ", got\n"
                << Join(lines, "\n");
}

// Expects that nothing is wrong with the field itself, of which errors say "path: what". How it
// goes together with other fields is the subject of another test.
void ExpectAccepted(const Place& place, const std::vector<std::string>& errors) {
  static const std::regex index(R"(\[\d+\])");
  for (const std::string& error : errors) {
    EXPECT_EQ(std::regex_replace(error, index, "").find(" " + place.path + ": "), error.npos)
        << error;
  }
}

TEST(EveryField, GoodValueIsAccepted) {
  const auto places = AllPlaces();
  EXPECT_GT(places.size(), 80u);
  for (const Place& place : places) {
    ExpectAccepted(place, ErrorLines(place.before + place.field->name() + ": " +
                                     GoodValue(place.field) + place.after));
  }
}

TEST(EveryField, WrongType) {
  for (const Place& place : AllPlaces()) {
    const bool is_string = place.field->cpp_type() == FieldDescriptor::CPPTYPE_STRING;
    ExpectRefused(place, place.field->name(), is_string ? "5" : "\"text\"", "expected");
    ExpectRefused(place, place.field->name(), "{ a: 1 }", "expected");
    ExpectRefused(place, place.field->name(), is_string ? "unquoted" : "surely", "");
  }
}

TEST(EveryField, NumbersThatAreNotPlain) {
  for (const Place& place : AllPlaces()) {
    const auto type = place.field->cpp_type();
    if (type == FieldDescriptor::CPPTYPE_STRING) continue;
    const bool is_number =
        type != FieldDescriptor::CPPTYPE_BOOL && type != FieldDescriptor::CPPTYPE_ENUM;
    for (const char* value : {"nan", "inf", "-inf", "NaN", "Infinity"}) {
      ExpectRefused(place, place.field->name(), value, is_number ? "not a finite number" : "");
    }
    for (const char* value : {"010", "0x10", "-010", "+1", "1e999", "99999999999999999999", "1f",
                              "1.2.3", "- 1", "1_000", "--1"}) {
      const bool is_float = type == FieldDescriptor::CPPTYPE_DOUBLE;
      if (is_float && std::string(value) == "99999999999999999999") continue;
      ExpectRefused(place, place.field->name(), value, "");
    }
  }
}

TEST(EveryField, BeyondItsRule) {
  for (const Place& place : AllPlaces()) {
    const Rule& rule = place.field->options().GetExtension(syntra::rule);
    if (rule.positive()) ExpectRefused(place, place.field->name(), "0", "greater than 0");
    if (rule.positive()) ExpectRefused(place, place.field->name(), "-1", "greater than 0");
    if (rule.has_min()) {
      const int64_t below = static_cast<int64_t>(rule.min()) - 1;
      ExpectRefused(place, place.field->name(), std::to_string(below), "at least");
    }
    if (rule.has_max()) {
      const int64_t above = static_cast<int64_t>(rule.max()) + 1;
      ExpectRefused(place, place.field->name(), std::to_string(above), "at most");
    }
  }
}

TEST(EveryField, SetTwice) {
  for (const Place& place : AllPlaces()) {
    if (place.field->is_repeated()) continue;
    const std::string value = GoodValue(place.field);
    const std::string again = value + " " + place.field->name();
    ExpectRefused(place, place.field->name(), again + ": " + value, "is already set");
  }
}

// All misspellings by one edit of a few places of the name, and some by two.
std::vector<std::string> Misspellings(const std::string& name) {
  std::vector<std::string> typos;
  for (size_t i = 1; i < name.size(); ++i) {
    std::string deleted = name, doubled = name, swapped = name, replaced = name;
    deleted.erase(i, 1);
    doubled.insert(i, 1, name[i]);
    std::swap(swapped[i], swapped[i - 1]);
    replaced[i] = 'q';
    for (const std::string& typo : {deleted, doubled, swapped, replaced}) typos.push_back(typo);
    if (i + 3 < name.size()) {
      std::string two = replaced;
      std::swap(two[i + 2], two[i + 3]);
      typos.push_back(two);
    }
  }
  std::erase(typos, name);
  return typos;
}

TEST(EveryField, MisspeltNamesAreSuggested) {
  int suggested = 0, all = 0;
  for (const Place& place : AllPlaces()) {
    const std::string& name = place.field->name();
    for (const std::string& typo : Misspellings(name)) {
      if (place.field->containing_type()->FindFieldByName(typo)) continue;
      ExpectRefused(place, typo, GoodValue(place.field), "has no field \"" + typo + "\"");
      // Among them may be that another field of the message is missing.
      const std::string errors = Join(ErrorLines(place.before + typo + ": 1" + place.after), "\n");
      suggested += errors.find("did you mean \"" + name + "\"?") != std::string::npos;
      ++all;
    }
  }
  EXPECT_GT(all, 2000);
  EXPECT_GE(suggested, 0.95 * all) << suggested << " of " << all;
}

TEST(EveryField, MisspeltEnumValuesAreSuggested) {
  int suggested = 0, all = 0;
  for (const Place& place : AllPlaces()) {
    if (!place.field->enum_type()) continue;
    for (int i = 0; i < place.field->enum_type()->value_count(); ++i) {
      const std::string& name = place.field->enum_type()->value(i)->name();
      for (const std::string& typo : Misspellings(name)) {
        if (place.field->enum_type()->FindValueByName(typo)) continue;
        ExpectRefused(place, place.field->name(), typo, "is not one of");
        const auto lines =
            ErrorLines(place.before + place.field->name() + ": " + typo + place.after);
        suggested += lines[0].find("did you mean \"" + name + "\"?") != std::string::npos;
        ++all;
      }
    }
  }
  EXPECT_GE(suggested, 0.95 * all) << suggested << " of " << all;
}

TEST(EveryField, OverridesAreCheckedAlike) {
  for (const Place& place : AllPlaces()) {
    const bool is_in_list = place.path.find("term.") != std::string::npos ||
                            place.path.find("layers.") != std::string::npos ||
                            place.path.starts_with("data.task.") ||
                            place.path.starts_with("cluster.link.");
    if (is_in_list) continue;
    const std::string value = GoodValue(place.field);
    ExpectAccepted(place, OverrideErrorLines(place.path + "=" + value));
    const auto typo = OverrideErrorLines(place.path + "q=" + value);
    ASSERT_EQ(typo.size(), 2u) << place.path << Join(typo, "\n");
    EXPECT_TRUE(typo[0].starts_with("error: --set " + place.path + "q=" + value + ": ")) << typo[0];
    EXPECT_NE(typo[0].find("did you mean \"" + place.field->name() + "\"?"), std::string::npos)
        << typo[0];
    if (place.field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) continue;
    for (const char* wrong : {"{}", "text", "nan", "", "5 5", "\"a\"", "007"}) {
      EXPECT_FALSE(OverrideErrorLines(place.path + "=" + wrong).empty()) << place.path << wrong;
    }
  }
}

}  // namespace
}  // namespace syntra
