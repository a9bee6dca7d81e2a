// TFRecord framing: little-endian length (8 bytes), masked CRC-32C of it (4), data, masked CRC-32C
// of the data (4). A frame that does not check out ends the file's trust: there is nothing to
// resynchronise on.
#include <isa-l/crc.h>

#include <bit>
#include <cstring>

#include "base/error.h"
#include "data/example.pb.h"
#include "data/line_reader.h"
#include "data/record_formats.h"

namespace syntra {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr size_t kHeaderBytes = 12;
constexpr size_t kFooterBytes = 4;

uint32_t MaskedCrc32c(std::span<const std::byte> bytes) {
  // ISA-L's argument lacks const, and its sum the final inversion.
  auto* data = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(bytes.data()));
  const uint32_t crc = ~crc32_iscsi(data, static_cast<int>(bytes.size()), 0xffffffffu);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

template <typename T>
T ReadAt(std::span<const std::byte> bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

class TfRecordReader : public RecordReader {
 public:
  TfRecordReader(std::unique_ptr<ByteSource> source, Path path, std::string text_feature)
      : source_(std::move(source)),
        path_(std::move(path)),
        text_feature_(std::move(text_feature)) {}

  bool Next(Record* record) override {
    std::byte header[kHeaderBytes];
    const size_t count = source_->Read(header);
    if (count == 0) return false;
    ++number_;
    if (count < kHeaderBytes) FailAt("TFRecord file ends inside a record header (truncated file)");
    if (!StartsLikeTfRecord(header)) FailAt("TFRecord length checksum does not match");
    const uint64_t length = ReadAt<uint64_t>(header, 0);
    if (length > LineReader::kMaxBytes) FailAt("TFRecord record is longer than 64 MiB");
    buffer_.resize(length + kFooterBytes);
    if (source_->Read(buffer_) < buffer_.size()) {
      FailAt("TFRecord file ends inside a record (truncated file)");
    }
    const auto data = std::span<const std::byte>(buffer_).first(length);
    if (ReadAt<uint32_t>(buffer_, length) != MaskedCrc32c(data)) {
      FailAt("TFRecord data checksum does not match");
    }
    *record = {.offset = offset_, .line = number_};
    record->fault = Parse(data, &record->text);
    if (record->fault != RecordFault::kNone) record->text = {};
    offset_ += static_cast<int64_t>(kHeaderBytes + length + kFooterBytes);
    return true;
  }

 private:
  RecordFault Parse(std::span<const std::byte> data, std::string_view* text) {
    if (!example_.ParseFromArray(data.data(), static_cast<int>(data.size()))) {
      return RecordFault::kNotAnExample;
    }
    const auto& features = example_.features().feature();
    const auto found = features.find(text_feature_);
    if (found == features.end()) return RecordFault::kMissingText;
    if (!found->second.has_bytes_list() || found->second.bytes_list().value_size() != 1) {
      return RecordFault::kTextNotAString;
    }
    *text = found->second.bytes_list().value(0);
    return CheckText(*text);
  }

  [[noreturn]] void FailAt(std::string_view reason) const {
    Fail(ExitCode::kData, "{}: byte {}, record {}: {}", path_.string(), offset_, number_, reason);
  }

  std::unique_ptr<ByteSource> source_;
  Path path_;
  std::string text_feature_;
  std::vector<std::byte> buffer_;
  tfrecord::Example example_;
  int64_t offset_ = 0;
  int64_t number_ = 0;
};

}  // namespace

bool StartsLikeTfRecord(std::span<const std::byte> bytes) {
  return bytes.size() >= kHeaderBytes &&
         ReadAt<uint32_t>(bytes, sizeof(uint64_t)) == MaskedCrc32c(bytes.first(sizeof(uint64_t)));
}

std::unique_ptr<RecordReader> MakeTfRecordReader(std::unique_ptr<ByteSource> source, Path path,
                                                 std::string text_feature) {
  return std::make_unique<TfRecordReader>(std::move(source), std::move(path),
                                          std::move(text_feature));
}

}  // namespace syntra
