// SPDX-License-Identifier: Apache-2.0
#include "tests/data/read_records.h"

#include <ostream>

namespace syntra {

void PrintTo(const ReadRecord& record, std::ostream* out) {
  *out << fmt::format("{{\"{}\" at {}, line {}, {} {}}}", record.text, record.offset, record.line,
                      ReasonOf(record.fault), record.detail);
}

std::vector<ReadRecord> ReadAll(const Path& path, const std::string& field) {
  const std::unique_ptr<RecordReader> reader = OpenRecordReader(path, field);
  std::vector<ReadRecord> records;
  for (Record record; reader->Next(&record);) {
    records.push_back(
        {std::string(record.text), record.offset, record.line, record.fault, record.detail});
  }
  return records;
}

}  // namespace syntra
