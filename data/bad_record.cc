// SPDX-License-Identifier: Apache-2.0
#include "data/bad_record.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "base/utf8.h"
#include "data/record_reader.h"

namespace syntra {
namespace {

constexpr int64_t kLoggedOneByOne = 10;
// A short file may have one bad record even if data.max_bad_fraction allows less than one, unless
// that is a larger share of its records than this.
constexpr double kMostThatOneMayBe = 0.1;
// A file whose first records are all bad is in another format than its name says: refused after
// this many, not at its end.
constexpr int64_t kCheckedEarly = 1000;

}  // namespace

std::string_view ReasonOf(RecordFault fault) {
  switch (fault) {
    case RecordFault::kNone:
      return "no fault";
    case RecordFault::kNotUtf8:
      return "text is not well-formed UTF-8";
    case RecordFault::kNulCharacter:
      return "text contains a NUL character";
    case RecordFault::kByteOrderMark:
      return "line starts with a byte order mark";
    case RecordFault::kLineTooLong:
      return "record is longer than 64 MiB";
    case RecordFault::kTruncatedLine:
      return "last line ends in the middle of a record";
    case RecordFault::kEmptyLine:
      return "line is empty";
    case RecordFault::kNotJson:
      return "line cannot be read as JSON";
    case RecordFault::kNotAnObject:
      return "line is JSON but not an object";
    case RecordFault::kMissingText:
      return "the field of data.text_field is missing";
    case RecordFault::kNullText:
      return "the field of data.text_field is null";
    case RecordFault::kTextNotAString:
      return "the field of data.text_field is not one string";
    case RecordFault::kNotAnExample:
      return "record is not a tf.Example";
    case RecordFault::kBadQuotes:
      return "a quoted field goes on after its closing quote";
    case RecordFault::kFieldCount:
      return "row has more or fewer fields than there are columns";
    case RecordFault::kMissingField:
      return "a field is missing";
    case RecordFault::kRepeatedField:
      return "a field occurs more than once";
    case RecordFault::kBadValue:
      return "invalid value in a field";
  }
  return "?";
}

RecordFault CheckText(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) return RecordFault::kNulCharacter;
  if (!IsUtf8(text)) return RecordFault::kNotUtf8;
  return RecordFault::kNone;
}

int64_t BadRecordPolicy::Limit(int64_t records) const {
  if (fail || max_fraction <= 0) return 0;
  const auto all = static_cast<double>(records);
  const int64_t one = all * kMostThatOneMayBe >= 1 ? 1 : 0;
  return std::max(one, static_cast<int64_t>(max_fraction * all));
}

void BadRecordLedger::CountBad(const Record& record) {
  ++records_;
  ++bad_;
  ++counts_[static_cast<size_t>(record.fault)];
  const std::string message =
      fmt::format("{}: byte {}, line {}: {}{}{}", file_.string(), record.offset, record.line,
                  ReasonOf(record.fault), record.detail.empty() ? "" : "; ", record.detail);
  if (policy_.fail) Fail(ExitCode::kData, "{}", message);
  if (bad_ == 1) first_ = message;
  if (bad_ <= kLoggedOneByOne && policy_.logs) Log().warn("skipped: {}", message);
  if (bad_ == kCheckedEarly && bad_ == records_ && bad_ > policy_.Limit(records_)) {
    Fail(ExitCode::kData,
         "{}: its first {} records are all bad: {}; data.max_bad_fraction is {}; the first is {}",
         file_.string(), bad_, Summary(), policy_.max_fraction, first_);
  }
}

std::string BadRecordLedger::Summary() const {
  std::string summary;
  for (int i = 1; i < kRecordFaultCount; ++i) {
    if (counts_[i] == 0) continue;
    summary += fmt::format("{}{} x \"{}\"", summary.empty() ? "" : ", ", counts_[i],
                           ReasonOf(static_cast<RecordFault>(i)));
  }
  return summary;
}

void BadRecordLedger::Finish() const {
  if (bad_ == 0) return;
  if (bad_ > policy_.Limit(records_)) {
    Fail(ExitCode::kData,
         "{}: {} of {} records are bad, more than the {} that data.max_bad_fraction {} allows: {}; "
         "the first is {}",
         file_.string(), bad_, records_, policy_.Limit(records_), policy_.max_fraction, Summary(),
         first_);
  }
  if (!policy_.logs) return;
  Log().warn("{}: skipped {} of {} records: {}", file_.string(), bad_, records_, Summary());
}

}  // namespace syntra
