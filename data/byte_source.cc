// SPDX-License-Identifier: Apache-2.0
#include "data/byte_source.h"

#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace syntra {
namespace {

class PlainSource : public ByteSource {
 public:
  explicit PlainSource(File file) : ByteSource(std::move(file)) {}

  size_t Read(std::span<std::byte> bytes) override {
    size_t filled = 0;
    while (filled < bytes.size()) {
      const size_t count = file_.Read(bytes.subspan(filled));
      if (count == 0) break;
      filled += count;
    }
    return filled;
  }
};

constexpr std::string_view kTruncated = "gzip data ends early (truncated file)";

std::string_view DecompressorsReason(int code) {
  switch (code) {
    case ISAL_INVALID_BLOCK:
      return "damaged gzip data (invalid deflate block)";
    case ISAL_INVALID_SYMBOL:
      return "damaged gzip data (invalid deflate symbol)";
    case ISAL_INVALID_LOOKBACK:
      return "damaged gzip data (invalid look-back distance)";
    case ISAL_INVALID_WRAPPER:
      return "not a gzip member";
    case ISAL_UNSUPPORTED_METHOD:
      return "unsupported gzip compression method";
    case ISAL_INCORRECT_CHECKSUM:
      return "gzip checksum does not match the data";
    default:
      return "damaged gzip data";
  }
}

// Any number of gzip members, as `cat a.gz b.gz` makes them.
class GzipSource : public ByteSource {
 public:
  explicit GzipSource(File file) : ByteSource(std::move(file)), input_(kFirstBlockBytes) {
    isal_inflate_init(&state_);
    state_.next_in = input_.data();
    ReadHeader();
  }

  size_t Read(std::span<std::byte> bytes) override {
    size_t filled = 0;
    while (filled < bytes.size()) {
      if (state_.block_state == ISAL_BLOCK_FINISH && !StartNextMember()) break;
      Refill();
      const size_t wanted = std::min(bytes.size() - filled, size_t{1} << 30);
      state_.next_out = reinterpret_cast<uint8_t*>(bytes.data() + filled);
      state_.avail_out = static_cast<uint32_t>(wanted);
      const uint32_t available = state_.avail_in;
      const int code = isal_inflate(&state_);
      const size_t produced = wanted - state_.avail_out;
      filled += produced;
      if (code < 0 || code == ISAL_NEED_DICT) FailAt(DecompressorsReason(code));
      const bool stuck = produced == 0 && state_.avail_in == available;
      if (state_.block_state != ISAL_BLOCK_FINISH && at_end_ && state_.avail_in == 0 &&
          produced < wanted) {
        FailAt(kTruncated);
      }
      // ISA-L buffers bits internally. Without this check, a round that makes no progress while
      // input is left would loop for ever.
      if (stuck && state_.avail_in > 0 && state_.block_state != ISAL_BLOCK_FINISH) {
        FailAt("damaged gzip data");
      }
    }
    return filled;
  }

 private:
  // Call it after a finished member. Sets up the next member; false at the end of the file.
  bool StartNextMember() {
    Refill();
    if (state_.avail_in == 0) return false;
    uint8_t* const next_in = state_.next_in;
    const uint32_t avail_in = state_.avail_in;
    isal_inflate_reset(&state_);
    state_.next_in = next_in;
    state_.avail_in = avail_in;
    ReadHeader();
    return true;
  }

  // Reads a member's header, which may be in several blocks of input. isal_inflate would forget in
  // the second which fields the first has announced.
  void ReadHeader() {
    CheckHeader();
    isal_gzip_header header;
    isal_gzip_header_init(&header);
    for (int code; (code = isal_read_gzip_header(&state_, &header)) != ISAL_DECOMP_OK;) {
      if (code != ISAL_END_INPUT) FailAt(DecompressorsReason(code));
      Refill();
      if (state_.avail_in == 0) FailAt(kTruncated);
    }
    state_.crc_flag = ISAL_GZIP_NO_HDR_VER;  // the header is read, the trailer not
  }

  // Checks the first bytes of a member. RFC 1952 wants reserved flags refused, but ISA-L ignores
  // them, and would read the fields that they announce as compressed data.
  void CheckHeader() {
    while (state_.avail_in < 4 && !at_end_) RefillBehind();
    if (state_.avail_in < 2 || state_.next_in[0] != 0x1f || state_.next_in[1] != 0x8b) {
      FailAt("bytes after the last gzip member that are not gzip");
    }
    if (state_.avail_in >= 4 && (state_.next_in[3] & 0xe0) != 0) {
      FailAt("unknown flags in a gzip header");
    }
  }

  void Refill() {
    if (state_.avail_in > 0 || at_end_) return;
    if (read_ > 0) input_.resize(kBlockBytes);
    RefillBehind();
  }

  // Moves the unread input to the front of the block and reads more after it.
  void RefillBehind() {
    if (state_.avail_in > 0) std::copy_n(state_.next_in, state_.avail_in, input_.data());
    state_.next_in = input_.data();
    const auto space = std::as_writable_bytes(std::span(input_)).subspan(state_.avail_in);
    const size_t count = file_.Read(space);
    at_end_ = count == 0;
    read_ += static_cast<int64_t>(count);
    state_.avail_in += static_cast<uint32_t>(count);
  }

  [[noreturn]] void FailAt(std::string_view reason) const {
    Fail(ExitCode::kData, "{}: byte {}: {}", file_.path().string(), read_ - state_.avail_in,
         reason);
  }

  std::vector<uint8_t> input_;
  inflate_state state_;
  int64_t read_ = 0;  // bytes taken from the file
  bool at_end_ = false;
};

// The program that has compressed a file that begins like this; null: none that is known.
const char* OtherCompressor(std::string_view begin) {
  if (begin.starts_with("\xFD\x37zXZ")) return "xz";
  if (begin.starts_with("\x28\xB5\x2F\xFD")) return "zstd";
  if (begin.starts_with("PK\x03\x04")) return "zip";
  // The first digits of pi stand after the level.
  const bool is_bzip2 = begin.starts_with("BZh") && begin.ends_with("1AY&");
  return is_bzip2 ? "bzip2" : nullptr;
}

}  // namespace

File OpenCorpusFile(const Path& path) { return File::OpenRegularForRead(path, ExitCode::kData); }

bool StartsLikeGzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

std::unique_ptr<ByteSource> OpenByteSource(const Path& path) {
  char first[8];
  File file = OpenCorpusFile(path);
  const size_t count = file.Read(std::as_writable_bytes(std::span(first)));
  file.Rewind();
  if (StartsLikeGzip(std::as_bytes(std::span(first).first(count)))) {
    return std::make_unique<GzipSource>(std::move(file));
  }
  if (const char* program = OtherCompressor({first, count})) {
    Fail(ExitCode::kData, "{} is compressed by {}; compress it by gzip instead, or not at all",
         path.string(), program);
  }
  // An empty file is a failed download, not an empty shard.
  if (path.extension() == ".gz") {
    Fail(ExitCode::kData, "{}: byte 0: {}, although its name ends in .gz", path.string(),
         file.Size() == 0 ? "empty file" : "not a gzip file");
  }
  return std::make_unique<PlainSource>(std::move(file));
}

}  // namespace syntra
