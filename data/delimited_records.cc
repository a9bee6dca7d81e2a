// SPDX-License-Identifier: Apache-2.0
// Tables as text: comma-separated values as RFC 4180 has them, and tab-separated ones. The first
// row names the columns. Of each row only the wanted field is kept; the others are passed over.
#include <algorithm>

#include "base/error.h"
#include "data/record_formats.h"
#include "data/text_stream.h"

namespace syntra {
namespace {

struct Dialect {
  char separator;
  // Whether a field may stand between double quotes, with any character in it and a quote doubled.
  bool quotes;
};

class DelimitedReader : public RecordReader {
 public:
  DelimitedReader(const Path& path, const std::string& text_field, Dialect dialect)
      : RecordReader(path), stream_(OpenByteSource(path)), dialect_(dialect) {
    ReadHeader(text_field);
  }

 protected:
  bool Read(Record* record) override {
    if (!ReadRow(record)) return false;
    if (record->fault != RecordFault::kNone) return true;
    if (fields_ != columns_) {
      record->fault = RecordFault::kFieldCount;
      record->detail = fmt::format("{} fields for {} columns", fields_, columns_);
      return true;
    }
    record->text = field_;
    record->fault = CheckText(field_);
    return true;
  }

 private:
  // What the characters before the next one make of it.
  enum class State {
    kFieldStart,
    kPlain,
    kQuoted,
    kQuoteInQuoted,   // the field's end, or the first of two
    kCarriageReturn,  // behind a quoted field: the row's end
    kMalformed,       // passed over up to the end of the line
  };

  void ReadHeader(const std::string& text_field) {
    std::vector<std::string> names;
    Record row;
    header_ = &names;
    if (!ReadRow(&row)) {
      Fail(ExitCode::kData, "{}: it is empty; its first row must name the columns",
           path().string());
    }
    header_ = nullptr;
    columns_ = fields_;
    const std::string place =
        fmt::format("{}: byte {}, line {}", path().string(), row.offset, row.line);
    if (row.fault != RecordFault::kNone) {
      Fail(ExitCode::kData, "{}: header row: {}", place, ReasonOf(row.fault));
    }
    const int64_t count = std::count(names.begin(), names.end(), text_field);
    if (count != 1) {
      Fail(ExitCode::kData,
           "{}: the header row names {} column \"{}\"; its columns are {}. Set data.text_field to "
           "the column that holds the text; a file without a header row needs one",
           place, count == 0 ? "no" : "more than one", text_field, QuotedNames(names));
    }
    wanted_ = std::find(names.begin(), names.end(), text_field) - names.begin();
  }

  // The next row that is not blank: its place and fault, fields_ and field_. False at the end of
  // the file.
  bool ReadRow(Record* row) {
    if (!SkipBlankLines()) return false;
    row->offset = stream_.offset();
    row->line = line_;
    state_ = State::kFieldStart;
    fields_ = 0;
    field_.clear();
    ScanRow(*row);
    if (stream_.offset() - row->offset > kMaxRowBytes) {
      row->fault = RecordFault::kLineTooLong;
    } else if (state_ == State::kMalformed) {
      row->fault = RecordFault::kBadQuotes;
    }
    if (state_ == State::kPlain && IsKept() && field_.ends_with('\r')) field_.pop_back();
    EndField();
    return true;
  }

  // False if nothing follows them.
  bool SkipBlankLines() {
    while (true) {
      while (stream_.unread().size() < 2 && stream_.ReadMore()) {
      }
      const std::string_view text = stream_.unread();
      if (text.empty()) return false;
      const size_t blank = text.starts_with("\n") ? 1 : text.starts_with("\r\n") ? 2 : 0;
      if (blank == 0) return true;
      stream_.Take(blank);
      ++line_;
    }
  }

  // Takes one row and its newline.
  void ScanRow(const Record& row) {
    do {
      const std::string_view text = stream_.unread();
      size_t at = 0;
      bool ended = false;
      while (at < text.size() && !ended) {
        ended = text[at] == '\n' && state_ != State::kQuoted;
        at += ended ? 1 : Step(text.substr(at));
      }
      stream_.Take(at);
      if (ended) {
        ++line_;
        return;
      }
      // Names are kept, however many; fields are not.
      if (header_ && stream_.offset() > kMaxRowBytes) {
        Fail(ExitCode::kData, "{}: its header row is longer than 64 MiB", path().string());
      }
    } while (stream_.ReadMore());
    if (state_ == State::kQuoted) {
      Fail(ExitCode::kData,
           "{}: byte {}, line {}: a quoted field of the row that starts here has no end (truncated "
           "file, or a quote too many)",
           path().string(), row.offset, row.line);
    }
  }

  // Understands one character of a row, or a run of them that mean the same; returns how many.
  size_t Step(std::string_view text) {
    switch (state_) {
      case State::kFieldStart:
        if (text[0] != '"' || !dialect_.quotes) return StepPlain(text);
        state_ = State::kQuoted;
        return 1;
      case State::kPlain:
        return StepPlain(text);
      case State::kQuoted:
        return StepQuoted(text);
      case State::kQuoteInQuoted:
        StepBehindQuote(text[0]);
        return 1;
      case State::kCarriageReturn:
      case State::kMalformed:
        state_ = State::kMalformed;
        return std::min(text.find('\n'), text.size());
    }
    return 1;
  }

  // A quote inside such a field is itself, as everywhere else.
  size_t StepPlain(std::string_view text) {
    if (text[0] == dialect_.separator) {
      EndField();
      return 1;
    }
    const char ends[] = {dialect_.separator, '\n'};
    const size_t length =
        std::min(text.find_first_of(std::string_view(ends, sizeof ends)), text.size());
    Keep(text.substr(0, length));
    state_ = State::kPlain;
    return length;
  }

  size_t StepQuoted(std::string_view text) {
    if (text[0] == '"') {
      state_ = State::kQuoteInQuoted;
      return 1;
    }
    const std::string_view run = text.substr(0, text.find('"'));
    Keep(run);
    line_ += std::count(run.begin(), run.end(), '\n');
    return run.size();
  }

  void StepBehindQuote(char c) {
    if (c == '"') {
      Keep("\"");
      state_ = State::kQuoted;
    } else if (c == dialect_.separator) {
      EndField();
    } else {
      state_ = c == '\r' ? State::kCarriageReturn : State::kMalformed;
    }
  }

  bool IsKept() const { return header_ || fields_ == wanted_; }

  // Nothing is lost by the limit: a row with so long a field is too long.
  void Keep(std::string_view text) {
    if (IsKept() && field_.size() + text.size() <= kMaxRecordBytes) field_ += text;
  }

  void EndField() {
    if (header_) header_->push_back(std::exchange(field_, {}));
    ++fields_;
    state_ = State::kFieldStart;
  }

  // Its newline included.
  static constexpr int64_t kMaxRowBytes = static_cast<int64_t>(kMaxRecordBytes) + 1;

  TextStream stream_;
  Dialect dialect_;
  std::vector<std::string>* header_ = nullptr;  // while the header row is read: its fields
  int64_t columns_ = 0, wanted_ = 0;
  int64_t line_ = 1;
  // The row that is being read, or was last.
  State state_ = State::kFieldStart;
  int64_t fields_ = 0;
  std::string field_;  // the wanted one
};

}  // namespace

std::unique_ptr<RecordReader> OpenCsvRecords(const Path& path, const std::string& text_field) {
  return std::make_unique<DelimitedReader>(path, text_field, Dialect{',', /*quotes=*/true});
}

std::unique_ptr<RecordReader> OpenTsvRecords(const Path& path, const std::string& text_field) {
  return std::make_unique<DelimitedReader>(path, text_field, Dialect{'\t', /*quotes=*/false});
}

}  // namespace syntra
