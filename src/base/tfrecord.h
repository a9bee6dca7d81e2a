// SPDX-License-Identifier: Apache-2.0
// TFRecord frames, as TensorFlow and TensorBoard read and write them: the length of the data (8
// bytes), its masked CRC-32C (4), the data, its masked CRC-32C (4); all little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace syntra {

inline constexpr size_t kTfRecordHeaderBytes = 12;
inline constexpr size_t kTfRecordFooterBytes = 4;

// Returns a frame around `data`, which is shorter than 1 GiB.
std::string FrameTfRecord(std::string_view data);

// The length of the data after a header; empty if `bytes` is shorter than a header or the length's
// checksum does not match.
std::optional<uint64_t> TfRecordLength(std::span<const std::byte> bytes);

// Whether the checksum in the footer is that of the data. `data_and_footer` holds both.
bool TfRecordIsWhole(std::span<const std::byte> data_and_footer);

// Whether a whole frame ends where `bytes` ends. Looks for its header from the end on and passes
// over a few that are followed by something else, so that this takes time in proportion to `bytes`.
bool EndsWithTfRecord(std::span<const std::byte> bytes);

}  // namespace syntra
