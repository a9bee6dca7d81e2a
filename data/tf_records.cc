// SPDX-License-Identifier: Apache-2.0
// TFRecord files of tf.Example messages. After a damaged frame the rest of the file cannot be read,
// since nothing marks the beginning of the next one.
#include "base/tfrecord.h"

#include <algorithm>

#include "base/error.h"
#include "data/byte_source.h"
#include "data/example.pb.h"
#include "data/record_formats.h"

namespace syntra {
namespace {

class TfRecordReader : public RecordReader {
 public:
  TfRecordReader(const Path& path, std::string text_feature)
      : RecordReader(path), source_(OpenByteSource(path)), text_feature_(std::move(text_feature)) {}

 protected:
  bool Read(Record* record) override {
    std::byte header[kTfRecordHeaderBytes];
    const size_t count = source_->Read(header);
    if (count == 0) return false;
    ++number_;
    *record = {.offset = offset_, .line = number_};
    if (count < sizeof header) FailAt("TFRecord file ends inside a record header (truncated file)");
    const std::optional<uint64_t> length = TfRecordLength(header);
    if (!length) FailAt("TFRecord length checksum does not match");
    if (*length > kMaxRecordBytes) FailAt("TFRecord record is longer than 64 MiB");
    buffer_.resize(*length + kTfRecordFooterBytes);
    if (source_->Read(buffer_) < buffer_.size()) {
      FailAt("TFRecord file ends inside a record (truncated file)");
    }
    if (!TfRecordIsWhole(buffer_)) FailAt("TFRecord data checksum does not match");
    record->fault = Parse(std::span<const std::byte>(buffer_).first(*length), record);
    offset_ += static_cast<int64_t>(sizeof header + buffer_.size());
    return true;
  }

 private:
  RecordFault Parse(std::span<const std::byte> data, Record* record) {
    if (!example_.ParseFromArray(data.data(), static_cast<int>(data.size()))) {
      return RecordFault::kNotAnExample;
    }
    const auto& features = example_.features().feature();
    const auto found = features.find(text_feature_);
    if (found == features.end()) {
      std::vector<std::string> names;
      for (const auto& [name, feature] : features) names.push_back(name);
      std::sort(names.begin(), names.end());
      record->detail =
          names.empty() ? "it has no features" : "its features are " + QuotedNames(names);
      return RecordFault::kMissingText;
    }
    if (!found->second.has_bytes_list() || found->second.bytes_list().value_size() != 1) {
      return RecordFault::kTextNotAString;
    }
    record->text = found->second.bytes_list().value(0);
    return CheckText(record->text);
  }

  [[noreturn]] void FailAt(std::string_view reason) const {
    Fail(ExitCode::kData, "{}: byte {}, record {}: {}", path().string(), offset_, number_, reason);
  }

  std::unique_ptr<ByteSource> source_;
  std::string text_feature_;
  std::vector<std::byte> buffer_;
  tfrecord::Example example_;
  int64_t offset_ = 0;
  int64_t number_ = 0;
};

}  // namespace

bool StartsLikeTfRecords(std::span<const std::byte> bytes) {
  return TfRecordLength(bytes).has_value();
}

void CheckEndOfTfRecords(const Path& path) {
  const MappedFile file(path, ExitCode::kData);
  const std::span<const std::byte> bytes = file.bytes();
  constexpr size_t kLargestFrame = kTfRecordHeaderBytes + kMaxRecordBytes + kTfRecordFooterBytes;
  if (bytes.empty() || StartsLikeGzip(bytes)) return;
  if (EndsWithTfRecord(bytes.last(std::min(bytes.size(), kLargestFrame)))) return;
  Fail(ExitCode::kData, "{}: the TFRecord file does not end with a whole record (truncated file)",
       path.string());
}

std::unique_ptr<RecordReader> OpenTfRecords(const Path& path, const std::string& text_field) {
  return std::make_unique<TfRecordReader>(path, text_field);
}

}  // namespace syntra
