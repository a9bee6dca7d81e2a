// SPDX-License-Identifier: Apache-2.0
// A gzip corpus: zlib accepts the same files and reads the same bytes, whatever the size of a read.
#include <zlib.h>

#include <algorithm>

#include "data/byte_source.h"
#include "fuzz/target.h"
#include "tests/data/corpus_files.h"

namespace syntra {
namespace {

constexpr size_t kMostBytes = size_t{4} << 20;  // that an input may become

struct Inflated {
  bool whole = false;  // the file is a list of members, each of them whole
  bool large = false;
  std::string bytes;
};

Inflated InflateMember(std::string_view* rest) {
  Inflated member;
  z_stream stream{};
  SYNTRA_CHECK(inflateInit2(&stream, 15 + 16) == Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest->data()));
  stream.avail_in = static_cast<uInt>(rest->size());
  int code = Z_OK;
  char block[65536];
  while (code == Z_OK && member.bytes.size() <= kMostBytes) {
    stream.next_out = reinterpret_cast<Bytef*>(block);
    stream.avail_out = sizeof block;
    code = inflate(&stream, Z_NO_FLUSH);
    member.bytes.append(block, sizeof block - stream.avail_out);
  }
  rest->remove_prefix(rest->size() - stream.avail_in);
  inflateEnd(&stream);
  member.whole = code == Z_STREAM_END;
  member.large = member.bytes.size() > kMostBytes;
  return member;
}

Inflated Inflate(std::string_view file) {
  Inflated all{.whole = true};
  do {
    const Inflated member = InflateMember(&file);
    all.bytes += member.bytes;
    all.whole = member.whole;
    all.large = all.bytes.size() > kMostBytes;
  } while (all.whole && !all.large && !file.empty());
  return all;
}

std::string ReadAll(const Path& path, size_t step) {
  const std::unique_ptr<ByteSource> source = OpenByteSource(path);
  std::string bytes, block(step, '\0');
  size_t count = 0;
  do {
    count = source->Read(std::as_writable_bytes(std::span(block)));
    bytes += block.substr(0, count);
  } while (count == step);
  return bytes;
}

void Run(std::string_view input) {
  std::string file = "\x1f\x8b";
  file += input.substr(std::min<size_t>(input.size(), 2));
  const Inflated expected = Inflate(file);
  if (expected.large) return;
  const Path path = InputFile(file, "input.gz");
  std::string bytes;
  try {
    bytes = ReadAll(path, 1 << 16);
  } catch (const Error& error) {
    SYNTRA_CHECK(!expected.whole, "zlib reads what is refused: {}", error.what());
    throw;
  }
  SYNTRA_CHECK(expected.whole, "zlib refuses what is read");
  SYNTRA_CHECK(bytes == expected.bytes, "{} bytes, {} by zlib", bytes.size(),
               expected.bytes.size());
  SYNTRA_CHECK(ReadAll(path, 7) == bytes);
}

// With what the header of a member may have: extra bytes, a name, a comment, a checksum.
std::string WithFullHeader() {
  std::string out(4096, '\0');
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  char extra[] = "extra", name[] = "name.json", comment[] = "comment";
  gz_header header{.extra = reinterpret_cast<Bytef*>(extra),
                   .extra_len = 5,
                   .name = reinterpret_cast<Bytef*>(name),
                   .comment = reinterpret_cast<Bytef*>(comment),
                   .hcrc = 1};
  deflateSetHeader(&stream, &header);
  char text[] = "text text text";
  stream.next_in = reinterpret_cast<Bytef*>(text);
  stream.avail_in = sizeof text - 1;
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::vector<std::string> Seeds() {
  std::string numbers;
  for (int i = 0; i < 300; ++i) numbers += fmt::format("{} ", i * i);
  return {Gzip(""), Gzip("a"), Gzip(numbers), Gzip("one") + Gzip("two"), WithFullHeader()};
}

}  // namespace

const Target fuzz_gzip = {.name = "gzip",
                          .refusals = {ExitCode::kData},
                          .run = Run,
                          .seeds = Seeds,
                          .tokens = {Gzip("a"), "\x1f\x8b\x08"},
                          .mutations = 3000};

}  // namespace syntra
