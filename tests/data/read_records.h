// SPDX-License-Identifier: Apache-2.0
// All that a reader makes of a file, to be compared.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "data/record_reader.h"

namespace syntra {

// A Record that outlives its reader's next one.
struct ReadRecord {
  std::string text;
  int64_t offset, line;
  RecordFault fault = RecordFault::kNone;
  std::string detail{};
  bool operator==(const ReadRecord&) const = default;
};

void PrintTo(const ReadRecord& record, std::ostream* out);

std::vector<ReadRecord> ReadAll(const Path& path, const std::string& field = "text");

}  // namespace syntra
