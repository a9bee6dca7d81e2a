// SPDX-License-Identifier: Apache-2.0
// Comma-separated values (RFC 4180) and tab-separated values. The first row names the columns. Only
// the wanted field of each row is kept.
#include <algorithm>

#include "base/error.h"
#include "data/record_formats.h"
#include "data/text_stream.h"

namespace syntra {
namespace {

struct Dialect {
  char separator;
  // Whether a field may be enclosed in double quotes. It may then contain any character; a quote is
  // doubled.
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
  // The state of the parser before the next character.
  enum class State {
    kFieldStart,
    kPlain,
    kQuoted,
    kQuoteInQuoted,   // after a quote that ends the field or is the first of two
    kCarriageReturn,  // after a quoted field: the end of the row
    kMalformed,       // skips to the end of the line
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

  // Reads the next row that is not blank: its place and fault, fields_ and field_. False at the end
  // of the file.
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

  // Skips blank lines. False at the end of the file.
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

  // Reads one row and its newline.
  void ScanRow(const Record& row) {
    do {
      const std::string_view text = stream_.unread();
      size_t at = 0;
      bool ended = false;
      while (at < text.size() && !ended) {
        ended = text[at] == '\n' && state_ != State::kQuoted;
        at += ended ? 1 : Parse(text.substr(at));
      }
      stream_.Take(at);
      if (ended) {
        ++line_;
        return;
      }
      // All column names of the header row are kept.
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

  // Reads one character of a row, or a run of characters with the same meaning. Returns how many.
  size_t Parse(std::string_view text) {
    switch (state_) {
      case State::kFieldStart:
        if (text[0] != '"' || !dialect_.quotes) return ParsePlain(text);
        state_ = State::kQuoted;
        return 1;
      case State::kPlain:
        return ParsePlain(text);
      case State::kQuoted:
        return ParseQuoted(text);
      case State::kQuoteInQuoted:
        ParseAfterQuote(text[0]);
        return 1;
      case State::kCarriageReturn:
      case State::kMalformed:
        state_ = State::kMalformed;
        return std::min(text.find('\n'), text.size());
    }
    return 1;
  }

  // A quote inside an unquoted field is an ordinary character.
  size_t ParsePlain(std::string_view text) {
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

  size_t ParseQuoted(std::string_view text) {
    if (text[0] == '"') {
      state_ = State::kQuoteInQuoted;
      return 1;
    }
    const std::string_view run = text.substr(0, text.find('"'));
    Keep(run);
    line_ += std::count(run.begin(), run.end(), '\n');
    return run.size();
  }

  void ParseAfterQuote(char c) {
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

  // The limit drops no text of a good record: a row with a longer field is too long itself.
  void Keep(std::string_view text) {
    if (IsKept() && field_.size() + text.size() <= kMaxRecordBytes) field_ += text;
  }

  void EndField() {
    if (header_) header_->push_back(std::exchange(field_, {}));
    ++fields_;
    state_ = State::kFieldStart;
  }

  // Length of the row so far, including its newline.
  static constexpr int64_t kMaxRowBytes = static_cast<int64_t>(kMaxRecordBytes) + 1;

  TextStream stream_;
  Dialect dialect_;
  std::vector<std::string>* header_ = nullptr;  // while the header row is read: its fields
  int64_t columns_ = 0, wanted_ = 0;
  int64_t line_ = 1;
  // The row that is being read or was read last.
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
