// SPDX-License-Identifier: Apache-2.0
// The faults that a single record can have, and the number of bad records that a corpus file may
// have.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/file.h"

namespace syntra {

enum class RecordFault : uint8_t {
  kNone,
  kNotUtf8,
  kNulCharacter,
  kByteOrderMark,
  kLineTooLong,
  kTruncatedLine,
  kEmptyLine,
  kNotJson,
  kNotAnObject,
  kMissingText,
  kNullText,
  kTextNotAString,
  kNotAnExample,
  kBadQuotes,
  kFieldCount,
  kMissingField,
  kRepeatedField,
  kBadValue,
};
inline constexpr int kRecordFaultCount = 18;

// "text is not well-formed UTF-8"
std::string_view ReasonOf(RecordFault fault);

// kNotUtf8, kNulCharacter or kNone.
RecordFault CheckText(std::string_view text);

struct Record;

struct BadRecordPolicy {
  bool fail = false;           // the first bad record is an error
  double max_fraction = 1e-4;  // otherwise, the largest share of a file's records
  bool logs = true;            // names what is bad

  // How many of a file's records may be bad: none with `fail` or a share of 0, else at least one of
  // ten or more.
  int64_t Limit(int64_t records) const;
};

// Counts one file's bad records and applies the policy. Throws Error(kData).
class BadRecordLedger {
 public:
  BadRecordLedger(Path file, BadRecordPolicy policy) : file_(std::move(file)), policy_(policy) {}

  void CountGood() { ++records_; }
  void CountBad(const Record& record);
  // At the end of the file: logs the counts by reason; fails if there were more bad records than
  // the policy's limit.
  void Finish() const;

  int64_t bad() const { return bad_; }
  int64_t count(RecordFault fault) const { return counts_[static_cast<size_t>(fault)]; }

 private:
  std::string Summary() const;

  Path file_;
  BadRecordPolicy policy_;
  int64_t records_ = 0, bad_ = 0;
  std::array<int64_t, kRecordFaultCount> counts_{};
  std::string first_;  // the first bad record, for the final error
};

}  // namespace syntra
