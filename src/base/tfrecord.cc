// SPDX-License-Identifier: Apache-2.0
#include "base/tfrecord.h"

#include <isa-l/crc.h>

#include <bit>
#include <cstring>

#include "base/error.h"

namespace syntra {
namespace {

static_assert(std::endian::native == std::endian::little);

// CRC-32C, rotated and offset as TFRecord asks, so that a checksum of data with checksums in it
// stays strong.
uint32_t MaskedCrc32c(std::span<const std::byte> bytes) {
  // ISA-L's parameter lacks const, and its sum the final inversion.
  auto* data = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(bytes.data()));
  const uint32_t crc = ~crc32_iscsi(data, static_cast<int>(bytes.size()), ~uint32_t{0});
  return std::rotr(crc, 15) + 0xA282EAD8u;
}

uint32_t MaskedCrc32c(std::string_view text) {
  return MaskedCrc32c(std::as_bytes(std::span(text)));
}

template <typename T>
std::string_view BytesOf(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

template <typename T>
T ReadAt(std::span<const std::byte> bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

}  // namespace

std::string FrameTfRecord(std::string_view data) {
  SYNTRA_CHECK(data.size() < (size_t{1} << 30), "a record of {} bytes", data.size());
  const uint64_t length = data.size();
  const uint32_t length_crc = MaskedCrc32c(BytesOf(length)), data_crc = MaskedCrc32c(data);
  std::string frame;
  frame.append(BytesOf(length)).append(BytesOf(length_crc));
  frame.append(data).append(BytesOf(data_crc));
  return frame;
}

std::optional<uint64_t> TfRecordLength(std::span<const std::byte> bytes) {
  if (bytes.size() < kTfRecordHeaderBytes) return std::nullopt;
  const auto length = bytes.first(sizeof(uint64_t));
  if (ReadAt<uint32_t>(bytes, length.size()) != MaskedCrc32c(length)) return std::nullopt;
  return ReadAt<uint64_t>(bytes, 0);
}

bool TfRecordIsWhole(std::span<const std::byte> data_and_footer) {
  SYNTRA_CHECK(data_and_footer.size() >= kTfRecordFooterBytes);
  const size_t length = data_and_footer.size() - kTfRecordFooterBytes;
  return ReadAt<uint32_t>(data_and_footer, length) == MaskedCrc32c(data_and_footer.first(length));
}

bool EndsWithTfRecord(std::span<const std::byte> bytes) {
  constexpr size_t kAroundData = kTfRecordHeaderBytes + kTfRecordFooterBytes;
  constexpr int kMostHeaders = 16;  // by chance or ill will; each costs a checksum up to the end
  int headers = 0;
  for (size_t length = 0; length + kAroundData <= bytes.size(); ++length) {
    const auto frame = bytes.last(length + kAroundData);
    if (ReadAt<uint64_t>(frame, 0) != length || TfRecordLength(frame) != length) continue;
    if (TfRecordIsWhole(frame.subspan(kTfRecordHeaderBytes))) return true;
    if (++headers == kMostHeaders) break;
  }
  return false;
}

}  // namespace syntra
