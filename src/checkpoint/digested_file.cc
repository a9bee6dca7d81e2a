// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/digested_file.h"

#include <algorithm>

namespace syntra {
namespace {

constexpr size_t kReadBlock = size_t{256} << 10;  // is still in the cache when the digest reads it

}  // namespace

DigestedFile::DigestedFile(File& file) : file_(file), ignored_(kReadBlock) { file.Rewind(); }

bool DigestedFile::ReadBlock(std::span<std::byte> block) {
  while (!block.empty()) {
    const size_t count = file_.Read(block);
    if (count == 0) return false;
    digest_.Add(block.first(count));
    at_ += static_cast<int64_t>(count);
    block = block.subspan(count);
  }
  return true;
}

bool DigestedFile::Read(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const auto block = bytes.first(std::min(bytes.size(), kReadBlock));
    if (!ReadBlock(block)) return false;
    bytes = bytes.subspan(block.size());
  }
  return true;
}

bool DigestedFile::SkipTo(int64_t offset) {
  while (at_ < offset) {
    const auto rest = static_cast<size_t>(offset - at_);
    if (!ReadBlock(std::span(ignored_).first(std::min(rest, kReadBlock)))) return false;
  }
  return at_ == offset;
}

std::string DigestedFile::DigestOfNext(int64_t bytes) {
  DigestStream digest;
  while (bytes > 0) {
    const auto block = std::span(ignored_).first(std::min(static_cast<size_t>(bytes), kReadBlock));
    if (!ReadBlock(block)) return "";
    digest.Add(block);
    bytes -= std::ssize(block);
  }
  return ToHex(digest.Finish());
}

}  // namespace syntra
