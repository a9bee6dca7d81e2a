// SPDX-License-Identifier: Apache-2.0
// Reads a column of a Parquet file page by page with Apache Arrow's Parquet library.
#include <arrow/buffer.h>
#include <arrow/io/interfaces.h>
#include <arrow/result.h>
#include <parquet/column_reader.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/schema.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <new>

#include "base/error.h"
#include "base/uninterrupted.h"
#include "data/byte_source.h"
#include "data/record_formats.h"

namespace syntra {
namespace {

constexpr int64_t kBatchRows = 256;

// The file as Arrow's interface. A system call that fails throws our Error, so that it is not
// reported as damage of the file.
class ArrowFile : public arrow::io::RandomAccessFile {
 public:
  explicit ArrowFile(File file) : file_(std::move(file)) {}

  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }
  arrow::Result<int64_t> Tell() const override { return position_; }
  arrow::Status Seek(int64_t position) override {
    position_ = position;
    return arrow::Status::OK();
  }
  arrow::Result<int64_t> GetSize() override { return file_.Size(); }

  arrow::Result<int64_t> Read(int64_t bytes, void* out) override {
    int64_t done = 0;
    while (done < bytes) {
      const ssize_t count = Uninterrupted([&] {
        return pread(file_.descriptor(), static_cast<char*>(out) + done, bytes - done, position_);
      });
      if (count < 0) {
        const int error_number = errno;
        Fail(ExitCode::kResources, "cannot read {}: {}", file_.path().string(),
             SystemErrorText(error_number));
      }
      if (count == 0) break;
      done += count;
      position_ += count;
    }
    return done;
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(int64_t bytes) override {
    ARROW_ASSIGN_OR_RAISE(auto buffer, arrow::AllocateResizableBuffer(bytes));
    ARROW_ASSIGN_OR_RAISE(const int64_t count, Read(bytes, buffer->mutable_data()));
    ARROW_RETURN_NOT_OK(buffer->Resize(count));
    return std::shared_ptr<arrow::Buffer>(std::move(buffer));
  }

 private:
  File file_;
  int64_t position_ = 0;
  bool closed_ = false;
};

class ParquetReader : public RecordReader {
 public:
  ParquetReader(const Path& path, const std::string& text_field) : RecordReader(path) {
    Translated([&] {
      // Reads page by page, not a whole column of a row group at once.
      parquet::ReaderProperties properties;
      properties.enable_buffered_stream();
      properties.set_page_checksum_verification(true);
      file_ = parquet::ParquetFileReader::Open(std::make_shared<ArrowFile>(OpenCorpusFile(path)),
                                               properties);
      FindColumn(text_field);
    });
  }

 protected:
  bool Read(Record* record) override {
    bool found = false;
    Translated([&] { found = ReadRow(record); });
    return found;
  }

 private:
  // Runs `body` and turns Arrow's exceptions into Errors.
  template <typename Body>
  void Translated(const Body& body) const {
    try {
      body();
    } catch (const parquet::ParquetStatusException& error) {
      if (error.status().IsOutOfMemory()) throw std::bad_alloc();
      FailDamaged(error.what());
    } catch (const parquet::ParquetException& error) {
      FailDamaged(error.what());
    }
  }

  [[noreturn]] void FailDamaged(std::string_view reason) const {
    Fail(ExitCode::kData, "{}: row {}: damaged, or not a Parquet file: {}", path().string(),
         row_ + 1, reason);
  }

  void FindColumn(const std::string& name) {
    const parquet::SchemaDescriptor& schema = *file_->metadata()->schema();
    std::vector<std::string> names;
    for (int i = 0; i < schema.num_columns(); ++i) {
      const parquet::ColumnDescriptor& column = *schema.Column(i);
      names.push_back(column.path()->ToDotString());
      if (names.back() != name) continue;
      if (column.physical_type() != parquet::Type::BYTE_ARRAY ||
          column.max_repetition_level() > 0) {
        Fail(ExitCode::kData, "{}: column \"{}\" does not hold text but {}", path().string(), name,
             column.max_repetition_level() > 0 ? "lists"
                                               : parquet::TypeToString(column.physical_type()));
      }
      column_ = i;
      null_below_ = column.max_definition_level();
    }
    if (column_ < 0) {
      Fail(ExitCode::kData,
           "{}: there is no column \"{}\"; its columns are {}. Set data.text_field to the column "
           "that holds the text",
           path().string(), name, QuotedNames(names));
    }
  }

  bool ReadRow(Record* record) {
    while (next_ == rows_) {
      if (!ReadBatch()) return false;
    }
    record->offset = chunk_offset_;
    record->line = ++row_;
    const bool is_null = levels_[next_++] < null_below_;
    if (is_null) {
      record->fault = RecordFault::kNullText;
      return true;
    }
    const parquet::ByteArray& value = values_[next_value_++];
    record->text = {reinterpret_cast<const char*>(value.ptr), value.len};
    record->fault =
        value.len > kMaxRecordBytes ? RecordFault::kLineTooLong : CheckText(record->text);
    return true;
  }

  // Reads the next rows of this row group or of the next one; false at the end of the file.
  bool ReadBatch() {
    while (!reader_ || !reader_->HasNext()) {
      if (rows_left_ != 0) FailDamaged("a row group holds another number of rows than it says");
      if (next_group_ == file_->metadata()->num_row_groups()) return false;
      OpenRowGroup(next_group_++);
    }
    next_ = next_value_ = 0;
    int64_t values = 0;
    levels_.fill(null_below_);  // Arrow gives no levels for a required column
    rows_ = reader_->ReadBatch(kBatchRows, levels_.data(), nullptr, values_.data(), &values);
    rows_left_ -= rows_;
    if (rows_ == 0 || rows_left_ < 0) {
      FailDamaged("a row group holds another number of rows than it says");
    }
    return true;
  }

  void OpenRowGroup(int group) {
    group_ = file_->RowGroup(group);
    reader_ = std::static_pointer_cast<parquet::ByteArrayReader>(group_->Column(column_));
    rows_left_ = group_->metadata()->num_rows();
    chunk_offset_ = group_->metadata()->ColumnChunk(column_)->data_page_offset();
  }

  std::unique_ptr<parquet::ParquetFileReader> file_;
  int column_ = -1;
  int16_t null_below_ = 0;  // the definition level of a value that is not null
  int next_group_ = 0;
  std::shared_ptr<parquet::RowGroupReader> group_;
  std::shared_ptr<parquet::ByteArrayReader> reader_;  // of the column in that row group
  int64_t rows_left_ = 0;                             // in the row group, after the batch
  int64_t chunk_offset_ = 0;
  // A batch of rows, and how far it has been read. A null has a level but no value.
  std::array<int16_t, kBatchRows> levels_;
  std::array<parquet::ByteArray, kBatchRows> values_;
  int64_t rows_ = 0, next_ = 0, next_value_ = 0;
  int64_t row_ = 0;  // number of the row in the file
};

}  // namespace

std::unique_ptr<RecordReader> OpenParquetRecords(const Path& path, const std::string& text_field) {
  return std::make_unique<ParquetReader>(path, text_field);
}

bool ReadsParquet() { return true; }

}  // namespace syntra
