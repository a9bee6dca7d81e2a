// SPDX-License-Identifier: Apache-2.0
// Tables as text: comma-separated values as RFC 4180 has them, and tab-separated ones. The first
// row names the columns where there is a header. Of each row only the wanted fields are kept; the
// others are passed over.
#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "data/record_formats.h"
#include "data/text_stream.h"

namespace syntra {
namespace {

struct Dialect {
  char separator;
  // Whether a field may be enclosed in double quotes. It may then contain any character; a quote is
  // doubled.
  bool quotes;
  const char* advice;  // where rows have more or fewer fields than there are columns
};

class DelimitedReader : public RecordReader {
 public:
  DelimitedReader(const Path& path, Dialect dialect, const TableFormat& format,
                  std::vector<TableField> wanted)
      : RecordReader(path),
        stream_(OpenByteSource(path)),
        dialect_(dialect),
        wanted_(std::move(wanted)),
        values_(wanted_.size()) {
    if (format.header) {
      ReadHeader(format.advice);
    } else {
      columns_ = format.columns;
      NumberTheColumns();
    }
  }

 protected:
  bool Read(Record* record) override {
    if (!ReadRow(record)) return false;
    if (record->fault == RecordFault::kNone) record->fault = Check(record);
    return true;
  }

  // Whether a row has what it must have, and its fields. Where nothing else says how many columns
  // there are, the first good row does.
  virtual RecordFault Check(Record* record) {
    if (columns_ > 0 && fields_ != columns_) {
      record->detail = fmt::format("{} for {}; {}", Counted(fields_, "field"),
                                   Counted(columns_, "column"), dialect_.advice);
      return RecordFault::kFieldCount;
    }
    for (size_t i = 0; i < wanted_.size(); ++i) {
      if (!values_[i] && !wanted_[i].optional) {
        record->detail = fmt::format("column {} of {}", wanted_[i].name, fields_);
        return RecordFault::kMissingField;
      }
      const RecordFault fault = values_[i] ? CheckText(*values_[i]) : RecordFault::kNone;
      if (fault != RecordFault::kNone) return fault;
    }
    columns_ = fields_;
    record->fields = values_;
    return RecordFault::kNone;
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

  void ReadHeader(const char* advice) {
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
    slots_.assign(names.size(), {});
    for (size_t i = 0; i < wanted_.size(); ++i) {
      const int64_t count = std::ranges::count(names, wanted_[i].name);
      if (count == 0 && wanted_[i].optional) continue;
      if (count != 1) {
        Fail(ExitCode::kData, "{}: the header row names {} column \"{}\"; its columns are {}{}",
             place, count == 0 ? "no" : "more than one", wanted_[i].name, QuotedNames(names),
             IsOfOtherKind(names) ? OtherKind() : advice);
      }
      slots_[std::ranges::find(names, wanted_[i].name) - names.begin()].push_back(i);
    }
  }

  // Whether what seems to be one column are several with the other kind's separator between them.
  bool IsOfOtherKind(const std::vector<std::string>& names) const {
    const char other = dialect_.separator == ',' ? '\t' : ',';
    return names.size() == 1 && names[0].find(other) != std::string::npos;
  }
  const char* OtherKind() const {
    return dialect_.separator == ',' ? "; it has tabs between them: name the file *.tsv"
                                     : "; it has commas between them: name the file *.csv";
  }

  // Without a header row.
  void NumberTheColumns() {
    for (size_t i = 0; i < wanted_.size(); ++i) {
      int64_t column = 0;
      if (!ParseInt64(wanted_[i].name, &column) || column < 1 || column > kMaxColumns) {
        if (wanted_[i].optional) continue;
        Fail(ExitCode::kData,
             "{}: without a header row its columns are called 1, 2, ...; there is no \"{}\"",
             path().string(), wanted_[i].name);
      }
      if (slots_.size() < static_cast<size_t>(column)) slots_.resize(column);
      slots_[column - 1].push_back(i);
    }
  }

  // The next row that is not blank: its place and fault, fields_ and values_. False at the end of
  // the file.
  bool ReadRow(Record* row) {
    if (!SkipBlankLines()) return false;
    row->offset = stream_.offset();
    row->line = line_;
    state_ = State::kFieldStart;
    fields_ = 0;
    field_.clear();
    std::ranges::fill(values_, std::nullopt);
    if (ScanRow(*row) > kMost) {
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

  // Reads one row and its newline. Returns its bytes without that.
  int64_t ScanRow(const Record& row) {
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
        return stream_.offset() - row.offset - 1;
      }
      // All column names of the header row are kept, and each takes far more than its bytes.
      if (header_ && stream_.offset() - row.offset > kMostOfHeader) {
        Fail(ExitCode::kData,
             "{}: its first row, which must name the columns, is longer than 1 MiB",
             path().string());
      }
    } while (stream_.ReadMore());
    if (state_ == State::kQuoted) {
      Fail(ExitCode::kData,
           "{}: byte {}, line {}: a quoted field of the row that starts here has no end (truncated "
           "file, or a quote too many)",
           path().string(), row.offset, row.line);
    }
    return stream_.offset() - row.offset;
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

  bool IsKept() const {
    return header_ || (fields_ < static_cast<int64_t>(slots_.size()) && !slots_[fields_].empty());
  }

  // The limit drops no text of a good record: a row with a longer field is too long itself.
  void Keep(std::string_view text) {
    if (IsKept() && field_.size() + text.size() <= kMaxRecordBytes) field_ += text;
  }

  void EndField() {
    if (header_) {
      header_->push_back(std::exchange(field_, {}));
    } else if (IsKept()) {
      for (const size_t slot : slots_[fields_]) values_[slot] = field_;
      field_.clear();
    }
    ++fields_;
    state_ = State::kFieldStart;
  }

  static constexpr int64_t kMaxColumns = 10000;
  static constexpr auto kMost = static_cast<int64_t>(kMaxRecordBytes);  // bytes of a row
  static constexpr int64_t kMostOfHeader = int64_t{1} << 20;            // about that many bytes

  TextStream stream_;
  Dialect dialect_;
  std::vector<std::string>* header_ = nullptr;  // while the header row is read: its fields
  std::vector<TableField> wanted_;
  std::vector<std::vector<size_t>> slots_;  // of each column: where its field goes in values_
  int64_t columns_ = 0;                     // 0: not known yet
  int64_t line_ = 1;
  // The row that is being read or was read last.
  State state_ = State::kFieldStart;
  int64_t fields_ = 0;
  std::string field_;                               // that is being read, if wanted
  std::vector<std::optional<std::string>> values_;  // of the wanted fields
};

// A column as the documents of a corpus.
class DelimitedTextReader : public DelimitedReader {
  static constexpr const char* kAdvice =
      ". Set data.text_field to the column that holds the text; a file without a header row needs "
      "one";

 public:
  DelimitedTextReader(const Path& path, Dialect dialect, const std::string& text_field)
      : DelimitedReader(path, dialect, {.advice = kAdvice}, {{text_field}}) {}

 protected:
  RecordFault Check(Record* record) override {
    const RecordFault fault = DelimitedReader::Check(record);
    if (fault == RecordFault::kNone) record->text = *record->fields[0];
    return fault;
  }
};

constexpr Dialect kCsv{',', /*quotes=*/true,
                       "a field with commas or newlines must be in double quotes"};
constexpr Dialect kTsv{'\t', /*quotes=*/false,
                       "a field of a tsv file cannot have tabs or newlines, in quotes neither; one "
                       "of a csv file can"};

}  // namespace

std::unique_ptr<RecordReader> OpenCsvRecords(const Path& path, const std::string& text_field) {
  return std::make_unique<DelimitedTextReader>(path, kCsv, text_field);
}

std::unique_ptr<RecordReader> OpenTsvRecords(const Path& path, const std::string& text_field) {
  return std::make_unique<DelimitedTextReader>(path, kTsv, text_field);
}

std::unique_ptr<RecordReader> OpenDelimitedTable(const Path& path, const TableFormat& format,
                                                 std::vector<TableField> fields) {
  const Dialect dialect = format.kind == TableFormat::Kind::kCsv ? kCsv : kTsv;
  return std::make_unique<DelimitedReader>(path, dialect, format, std::move(fields));
}

}  // namespace syntra
