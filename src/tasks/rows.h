// SPDX-License-Identifier: Apache-2.0
// Rows of a task's file: each becomes examples or is a bad one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "data/record_reader.h"
#include "tasks/task.h"

namespace syntra {

struct Row {
  std::span<const std::optional<std::string>> fields;  // that were asked for
  int64_t number = 0;                                  // among the split's rows, from 0
};

// The fault of a row: "label is \"2\"; must be 0 or 1".
struct BadRow {
  std::string detail;
};

struct RowFile {
  Path path;
  TableFormat format{};
  std::vector<TableField> fields{};
  // The number of rows in the split's files before this one, at which this file's numbers begin;
  // this file's rows are added to it. Null: there is only one file.
  int64_t* rows = nullptr;
};

// The examples of a row; throws BadRow.
using RowParser = std::function<std::vector<TaskExample>(const Row&)>;

// Passes the examples of all good rows of a file to `sink`. Logs the bad rows, and returns their
// number.
int64_t ReadRows(const RowFile& file, const BadRecordPolicy& policy, const RowParser& parse,
                 const Task::Sink& sink);

inline constexpr TableFormat kTsv{.kind = TableFormat::Kind::kTsv};
inline constexpr TableFormat kJsonLines{.kind = TableFormat::Kind::kJsonLines};

// The id of a row: its field or, where that is absent or empty, its number.
inline std::string IdOf(const std::optional<std::string>& field, const Row& row) {
  return field && !field->empty() ? *field : std::to_string(row.number);
}

// The label of a row of `split`, which may have none: the field is absent or, in a test split, is
// what stands for no label in exports of TensorFlow Datasets and Hugging Face: empty or -1, unless
// this is one of the `values` that labels have.
std::optional<std::string> LabelOf(const std::optional<std::string>& field, TaskSplit::Use split,
                                   std::span<const std::string> values = {});

// The place of `text` among `values`; throws BadRow, which names the `field` and ends with
// `advice`.
int IndexOf(std::string_view text, std::span<const std::string> values, std::string_view field,
            std::string_view advice = "");

// A member of a JSON object. These throw BadRow if it is missing or has another type.
const Json& JsonMember(const Json& object, const char* name);
const Json& JsonArray(const Json& object, const char* name);
std::string JsonString(const Json& object, const char* name);
int64_t JsonInteger(const Json& object, const char* name);

}  // namespace syntra
