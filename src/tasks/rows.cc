// SPDX-License-Identifier: Apache-2.0
#include "tasks/rows.h"

#include <algorithm>

#include "base/text.h"

namespace syntra {

int64_t ReadRows(const RowFile& file, const BadRecordPolicy& policy, const RowParser& parse,
                 const Task::Sink& sink) {
  const std::unique_ptr<RecordReader> reader = OpenTable(file.path, file.format, file.fields);
  BadRecordLedger ledger(file.path, policy);
  Record record;
  int64_t own_rows = 0;
  int64_t& rows = file.rows ? *file.rows : own_rows;
  for (; reader->Next(&record); ++rows) {
    if (record.fault == RecordFault::kNone) {
      try {
        for (TaskExample& example : parse({record.fields, rows})) sink(std::move(example));
        ledger.CountGood();
        continue;
      } catch (const BadRow& bad) {
        record.fault = RecordFault::kBadValue;
        record.detail = bad.detail;
      } catch (const Json::exception& error) {
        record.fault = RecordFault::kBadValue;
        record.detail = error.what();
      }
    }
    ledger.CountBad(record);
  }
  ledger.Finish();
  return ledger.bad();
}

std::optional<std::string> LabelOf(const std::optional<std::string>& field, TaskSplit::Use split,
                                   std::span<const std::string> values) {
  const auto is_placeholder = [&](const std::string& text) {
    const bool is_none = text.empty() || text == "-1" || text == "-1.0";
    return is_none && std::ranges::find(values, text) == values.end();
  };
  if (field && split == TaskSplit::Use::kTest && is_placeholder(*field)) return std::nullopt;
  return field;
}

int IndexOf(std::string_view text, std::span<const std::string> values, std::string_view field,
            std::string_view advice) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] == text) return static_cast<int>(i);
  }
  // Tables without a header call their columns by numbers.
  const bool is_number = field.find_first_not_of("0123456789") == std::string_view::npos;
  throw BadRow{fmt::format("{}{} is \"{}\"; must be {}{}", is_number ? "column " : "", field,
                           Printable(text, 40), Join(values, " or "), advice)};
}

const Json& JsonMember(const Json& object, const char* name) {
  if (!object.is_object()) throw BadRow{fmt::format("what holds \"{}\" is not an object", name)};
  const auto member = object.find(name);
  if (member == object.end()) throw BadRow{fmt::format("there is no \"{}\"", name)};
  return *member;
}

const Json& JsonArray(const Json& object, const char* name) {
  const Json& member = JsonMember(object, name);
  if (!member.is_array()) throw BadRow{fmt::format("\"{}\" is not a list", name)};
  return member;
}

std::string JsonString(const Json& object, const char* name) {
  const Json& member = JsonMember(object, name);
  if (!member.is_string()) throw BadRow{fmt::format("\"{}\" is not a string", name)};
  return member.get<std::string>();
}

int64_t JsonInteger(const Json& object, const char* name) {
  const Json& member = JsonMember(object, name);
  if (const auto integer = AsInteger(member)) return *integer;
  throw BadRow{fmt::format("\"{}\" is not an integer of 64 bits", name)};
}

}  // namespace syntra
