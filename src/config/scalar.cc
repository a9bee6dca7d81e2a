// SPDX-License-Identifier: Apache-2.0
#include "config/scalar.h"

#include <fmt/format.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>

#include "base/text.h"
#include "base/utf8.h"
#include "config/suggest.h"
#include "configs/schema/options.pb.h"

namespace syntra {
namespace {

using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

std::string_view WithoutSign(std::string_view text) {
  return text.starts_with('-') || text.starts_with('+') ? text.substr(1) : text;
}

// Spellings that some parser somewhere takes for a number, but not for the one that was meant.
std::string OddNumber(std::string_view text) {
  const std::string_view digits = WithoutSign(text);
  if (text.starts_with('+')) return fmt::format("{} must be written without +", Quoted(text));
  if (digits.starts_with("0x") || digits.starts_with("0X")) {
    return fmt::format("{} is hexadecimal; write it in decimal", Quoted(text));
  }
  if (digits.size() > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9') {
    return fmt::format("{} starts with 0, which would mean octal; write it without leading zeros",
                       Quoted(text));
  }
  return "";
}

bool IsNotFinite(std::string_view text) {
  std::string lower(WithoutSign(text).substr(0, 9));
  for (char& c : lower) c = static_cast<char>(c | 0x20);
  return lower == "nan" || lower == "inf" || lower == "infinity";
}

struct Unit {
  std::string_view name;
  double factor;
};
constexpr Unit kCounts[] = {{"", 1},    {"k", 1e3}, {"K", 1e3}, {"M", 1e6},
                            {"G", 1e9}, {"B", 1e9}, {"%", 0.01}};
constexpr Unit kMinutes[] = {{"", 1},          {"s", 1.0 / 60},  {"m", 1},      {"min", 1},
                             {"h", 60},        {"hour", 60},     {"hours", 60}, {"d", 24 * 60},
                             {"day", 24 * 60}, {"days", 24 * 60}};

// What to write in place of a number with a unit (10k, 2h, 15%), with separators (10_000) or, for
// an integer, with a point or an exponent (1e4). Where a field has a unit, its name ends in it.
std::string AdviceFor(const FieldDescriptor& field, std::string_view text) {
  std::string digits(text);
  std::erase(digits, '_');
  double number;
  const char* end = digits.data() + digits.size();
  const auto [rest, failed] = std::from_chars(digits.data(), end, number);
  if (failed != std::errc()) return "";
  const std::span<const Unit> units =
      field.name().ends_with("_minutes") ? std::span<const Unit>(kMinutes) : kCounts;
  const std::string_view name(rest, end);
  const auto unit = std::ranges::find(units, name, &Unit::name);
  if (unit == units.end()) return name[0] == '.' ? "" : "; write the number without a unit";
  const double value = number * unit->factor;
  if (!std::isfinite(value)) return "";
  const bool is_real = field.cpp_type() == FieldDescriptor::CPPTYPE_FLOAT ||
                       field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE;
  if (is_real) return fmt::format("; write {:.12g}", value);
  constexpr double kExact = 0x1p53;  // beyond, a double does not hold every integer
  if (value != std::floor(value) || std::abs(value) > kExact) return "";
  return fmt::format("; write {:.0f}", value);
}

// Text that is not a number of the field's kind.
std::string NoNumber(const FieldDescriptor& field, std::string_view text) {
  return fmt::format("expected {}, found {}{}", ScalarKind(field), Quoted(text),
                     AdviceFor(field, text));
}

template <typename T>
std::string ParseInteger(const FieldDescriptor& field, std::string_view text, T* value) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), *value);
  const bool whole = result.ptr == text.data() + text.size();
  if (whole && result.ec == std::errc()) return "";
  const bool unsigned_and_negative = std::is_unsigned_v<T> && text.starts_with('-');
  double number;
  if ((whole && result.ec == std::errc::result_out_of_range) ||
      (unsigned_and_negative && ParseDouble(text, &number) && number == std::floor(number))) {
    return fmt::format("{} is out of range; allowed are {} to {}", Quoted(text),
                       std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
  }
  return NoNumber(field, text);
}

std::string ParseFloat(const FieldDescriptor& field, std::string_view text, double largest,
                       double* value) {
  const std::string_view digits = WithoutSign(text);
  const bool starts =
      !digits.empty() && (digits[0] == '.' || (digits[0] >= '0' && digits[0] <= '9'));
  const auto result = std::from_chars(text.data(), text.data() + text.size(), *value);
  if (!starts || result.ptr != text.data() + text.size()) return NoNumber(field, text);
  if (result.ec == std::errc::result_out_of_range || std::abs(*value) > largest) {
    return fmt::format("{} is too large or too small for a floating-point number", Quoted(text));
  }
  if (*value == 0) *value = 0;  // as text, in digests and differences, -0 would be another number
  return "";
}

const EnumValueDescriptor* ValueCalled(const std::string& name,
                                       const google::protobuf::EnumDescriptor& type) {
  for (int i = 0; i < type.value_count(); ++i) {
    const EnumValueDescriptor* value = type.value(i);
    if (value->name() == name || value->options().GetExtension(formerly) == name) return value;
  }
  return nullptr;
}

// Calls Set or Add of reflection.
#define SYNTRA_STORE(Type, value)                                     \
  (field->is_repeated() ? reflection.Add##Type(message, field, value) \
                        : reflection.Set##Type(message, field, value))

std::string SetNumber(Message* message, const FieldDescriptor* field, const ScalarText& text) {
  const Reflection& reflection = *message->GetReflection();
  if (IsNotFinite(text.text)) return fmt::format("{} is not a finite number", Quoted(text.text));
  if (text.kind != TokenKind::kNumber) return NoNumber(*field, text.text);
  if (std::string odd = OddNumber(text.text); !odd.empty()) return odd;
  std::string error;
  const auto parse_integer = [&](auto value, auto store) {
    error = ParseInteger(*field, text.text, &value);
    if (error.empty()) store(value);
  };
  const auto parse_float = [&](double largest, auto store) {
    double value;
    error = ParseFloat(*field, text.text, largest, &value);
    if (error.empty()) store(value);
  };
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      parse_integer(int32_t{}, [&](int32_t value) { SYNTRA_STORE(Int32, value); });
      break;
    case FieldDescriptor::CPPTYPE_INT64:
      parse_integer(int64_t{}, [&](int64_t value) { SYNTRA_STORE(Int64, value); });
      break;
    case FieldDescriptor::CPPTYPE_UINT32:
      parse_integer(uint32_t{}, [&](uint32_t value) { SYNTRA_STORE(UInt32, value); });
      break;
    case FieldDescriptor::CPPTYPE_UINT64:
      parse_integer(uint64_t{}, [&](uint64_t value) { SYNTRA_STORE(UInt64, value); });
      break;
    case FieldDescriptor::CPPTYPE_FLOAT:
      parse_float(std::numeric_limits<float>::max(),
                  [&](double value) { SYNTRA_STORE(Float, static_cast<float>(value)); });
      break;
    default:
      parse_float(std::numeric_limits<double>::max(),
                  [&](double value) { SYNTRA_STORE(Double, value); });
  }
  return error;
}

}  // namespace

std::string ScalarKind(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return "a string in quotes";
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    case FieldDescriptor::CPPTYPE_DOUBLE:
    case FieldDescriptor::CPPTYPE_FLOAT:
      return "a number";
    case FieldDescriptor::CPPTYPE_ENUM: {
      std::string names = "one of ";
      for (int i = 0; i < field.enum_type()->value_count(); ++i) {
        names += (i ? ", " : "") + field.enum_type()->value(i)->name();
      }
      return names;
    }
    default:
      return "an integer";
  }
}

std::string SetScalar(Message* message, const FieldDescriptor* field, const ScalarText& text) {
  const Reflection& reflection = *message->GetReflection();
  const auto wrong = [&] {
    return fmt::format("expected {}, found {}", ScalarKind(*field), Quoted(text.text));
  };
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      if (text.kind != TokenKind::kString) return wrong();
      if (!IsUtf8(text.text)) return "the string is not UTF-8";
      if (text.text.find('\0') != std::string::npos) return "the string holds a NUL byte";
      SYNTRA_STORE(String, text.text);
      return "";
    case FieldDescriptor::CPPTYPE_BOOL:
      if (text.kind != TokenKind::kIdentifier || (text.text != "true" && text.text != "false")) {
        return wrong();
      }
      SYNTRA_STORE(Bool, text.text == "true");
      return "";
    case FieldDescriptor::CPPTYPE_ENUM: {
      if (text.kind != TokenKind::kIdentifier) return wrong();
      const EnumValueDescriptor* value = ValueCalled(text.text, *field->enum_type());
      if (!value) return UnknownValueMessage(*field->enum_type(), text.text);
      SYNTRA_STORE(Enum, value);
      return "";
    }
    default:
      if (text.kind == TokenKind::kString) return wrong();
      return SetNumber(message, field, text);
  }
}

std::string ScalarToText(const Message& message, const FieldDescriptor* field, int index) {
  google::protobuf::TextFormat::Printer printer;
  printer.SetUseUtf8StringEscaping(true);
  std::string text;
  // Reads an unset field's default too.
  printer.PrintFieldValueToString(message, field, index, &text);
  return text;
}

}  // namespace syntra
