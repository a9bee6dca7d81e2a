// SPDX-License-Identifier: Apache-2.0
#include "base/tfrecord.h"

#include <gtest/gtest.h>

#include <cstring>

namespace syntra {
namespace {

std::span<const std::byte> Bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(TfRecord, FramesAsTensorFlowDoes) {
  // Event files of TensorFlow begin with these bytes: 24 bytes of data and the length's crc.
  const std::string frame = FrameTfRecord(std::string(24, 'x'));
  EXPECT_EQ(frame.substr(0, 12), std::string("\x18\0\0\0\0\0\0\0\xA3\x7FK\"", 12));
  EXPECT_EQ(frame.size(), 40u);
  // The check value of crc32c is 0xE3069283 for these nine bytes.
  uint32_t crc;
  std::memcpy(&crc, FrameTfRecord("123456789").data() + 21, sizeof crc);
  EXPECT_EQ(crc, ((0xE3069283u >> 15) | (0xE3069283u << 17)) + 0xA282EAD8u);
}

TEST(TfRecord, FindsEveryFlippedBit) {
  const std::string frame = FrameTfRecord("some words");
  for (size_t bit = 0; bit < 8 * frame.size(); ++bit) {
    std::string flipped = frame;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    const auto bytes = Bytes(flipped);
    const bool good =
        TfRecordLength(bytes).has_value() && TfRecordIsWhole(bytes.subspan(kTfRecordHeaderBytes));
    EXPECT_FALSE(good) << "bit " << bit;
  }
  EXPECT_EQ(TfRecordLength(Bytes(frame)), 10u);
  EXPECT_TRUE(TfRecordIsWhole(Bytes(frame).subspan(kTfRecordHeaderBytes)));
  EXPECT_FALSE(TfRecordLength(Bytes(frame).first(kTfRecordHeaderBytes - 1)).has_value());
}

TEST(TfRecord, FindsTheLastFrameFromTheEnd) {
  // One with data that look like the header of another frame.
  for (const std::string& data :
       {std::string(), std::string(1000, 'x'), FrameTfRecord("inner").substr(0, 12)}) {
    const std::string file = FrameTfRecord("before") + FrameTfRecord(data);
    EXPECT_TRUE(EndsWithTfRecord(Bytes(file)));
    // Cut anywhere but between the two frames.
    for (size_t size = 1; size < file.size(); ++size) {
      const bool is_whole = size == FrameTfRecord("before").size();
      EXPECT_EQ(EndsWithTfRecord(Bytes(file).first(size)), is_whole) << size;
    }
    std::string flipped = file;
    flipped.back() = static_cast<char>(flipped.back() ^ 1);
    EXPECT_FALSE(EndsWithTfRecord(Bytes(flipped)));
  }
  EXPECT_FALSE(EndsWithTfRecord({}));
}

// Data may hold headers of frames that would end there, too. Each costs a checksum, so that only a
// few are passed over.
TEST(TfRecord, LooksBehindAFewFalseHeaders) {
  for (const size_t headers : {3, 100}) {
    std::string data;
    for (size_t behind = headers; behind-- > 0;) {
      const std::string rest(behind * kTfRecordHeaderBytes + kTfRecordFooterBytes, 'x');
      data += FrameTfRecord(rest).substr(0, kTfRecordHeaderBytes);
    }
    // What ends the frame of each false header is the checksum of the whole data.
    data += std::string(kTfRecordFooterBytes, 'x');
    EXPECT_EQ(EndsWithTfRecord(Bytes(FrameTfRecord(data))), headers == 3);
  }
}

}  // namespace
}  // namespace syntra
