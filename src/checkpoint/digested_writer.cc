// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/digested_writer.h"

#include <algorithm>
#include <cstring>

namespace syntra {
namespace {

// Large enough that a disk's latency does not count.
constexpr size_t kWrittenBlock = size_t{4} << 20;
// Is still in the processor's cache when the digest reads it.
constexpr size_t kPiece = size_t{256} << 10;

}  // namespace

DigestedWriter::DigestedWriter(const Path& path)
    : file_(File::CreateNew(path)), block_(kWrittenBlock) {
  BypassPageCache(file_);
}

void DigestedWriter::Write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto free = block_.bytes().subspan(used_);
    const auto piece = bytes.first(std::min({bytes.size(), free.size(), kPiece}));
    std::memcpy(free.data(), piece.data(), piece.size());
    digest_.Add(free.first(piece.size()));
    used_ += piece.size();
    if (used_ == kWrittenBlock) WriteBlock();
    bytes = bytes.subspan(piece.size());
  }
}

FileDigest DigestedWriter::Finish() {
  WriteBlock();
  file_.Sync();
  file_.Close();
  return {written_, ToHex(digest_.Finish())};
}

void DigestedWriter::WriteBlock() {
  file_.Write(block_.bytes().first(used_));
  written_ += static_cast<int64_t>(used_);
  used_ = 0;
}

}  // namespace syntra
