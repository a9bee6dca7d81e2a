// SPDX-License-Identifier: Apache-2.0
#include "data/byte_source.h"

#include <isa-l/crc.h>

#include "data/record_reader.h"
#include "tests/data/corpus_files.h"

namespace syntra {
namespace {

std::string AllBytes(const Path& path, size_t block = 1000) {
  const std::unique_ptr<ByteSource> source = OpenByteSource(path);
  std::string text;
  std::vector<std::byte> bytes(block);
  while (const size_t count = source->Read(bytes)) {
    text.append(reinterpret_cast<const char*>(bytes.data()), count);
  }
  return text;
}

// Some compressible and some random-looking text of more than one deflate block.
std::string LongText() {
  std::string text;
  uint32_t state = 1;
  for (int i = 0; i < 40000; ++i) {
    state = state * 1664525u + 1013904223u;
    text += fmt::format("line {} of {:x}\n", i, state >> 8);
  }
  return text;
}

TEST(ByteSource, ReadsPlainAndGzip) {
  const Path directory = ScratchDirectory("plain_gzip");
  const std::string text = LongText();
  EXPECT_EQ(AllBytes(WriteScratch(directory / "a.txt", text)), text);
  const std::string zipped = Gzip(text);
  for (const size_t block : {size_t{1} << 22, size_t{65536}, size_t{777}}) {
    EXPECT_EQ(AllBytes(WriteScratch(directory / "a.txt.gz", zipped), block), text);
  }
  EXPECT_EQ(AllBytes(WriteScratch(directory / "empty.txt.gz", Gzip(""))), "");
  EXPECT_EQ(AllBytes(WriteScratch(directory / "empty.txt", "")), "");
}

TEST(ByteSource, ReadsAllMembers) {
  const Path directory = ScratchDirectory("members");
  const std::string text = LongText();
  const Path path = WriteScratch(directory / "m.txt.gz",
                                 Gzip("first\n") + Gzip("") + Gzip(text) + Gzip("last\n"));
  EXPECT_EQ(AllBytes(path), "first\n" + text + "last\n");
}

// A member that ends just before a block of the reader's input does.
TEST(ByteSource, ReadsMembersAcrossInputBlocks) {
  const Path directory = ScratchDirectory("member_borders");
  std::string noise(1200000, '\0');
  uint32_t state = 7;
  for (char& c : noise) c = static_cast<char>((state = state * 1664525u + 1013904223u) >> 24);
  const std::string last = Gzip(noise);
  // The ends of the first two input blocks.
  constexpr size_t kFirst = size_t{16} << 10, kSecond = kFirst + (size_t{1} << 20);
  ASSERT_GT(last.size(), kSecond);
  for (const size_t border : {kFirst, kSecond}) {
    const std::string start = noise.substr(0, border - border / 64);
    for (const int cut : {-2, -1, 0, 1, 2}) {
      // Padding members move the border of the last one across the end of the block.
      std::string zipped = Gzip(start);
      while (zipped.size() + Gzip("").size() < border + cut) zipped += Gzip("");
      zipped += last;
      EXPECT_EQ(AllBytes(WriteScratch(directory / "b.gz", zipped)), start + noise);
    }
  }
}

// A member with every optional field (RFC 1952, section 2.3).
std::string WithFields(const std::string& text, size_t extra, size_t name) {
  std::string header = Gzip(text).substr(0, 10);
  header[3] = 0x1e;  // FHCRC, FEXTRA, FNAME, FCOMMENT
  header += static_cast<char>(extra & 0xff);
  header += static_cast<char>(extra >> 8);
  header += std::string(extra, 'e') + std::string(name, 'n') + '\0' + "comment" + '\0';
  const uint32_t crc =
      crc32_gzip_refl(0, reinterpret_cast<const unsigned char*>(header.data()), header.size());
  header += static_cast<char>(crc & 0xff);
  header += static_cast<char>(crc >> 8 & 0xff);
  return header + Gzip(text).substr(10);
}

TEST(ByteSource, ReadsHeadersAcrossInputBlocks) {
  const Path directory = ScratchDirectory("header_borders");
  const std::string last = WithFields("last\n", 4, 8);
  const size_t least = WithFields("first\n", 0, 0).size();
  for (size_t cut = 0; cut <= last.size(); ++cut) {
    // The first block of input ends after so many bytes of the last member.
    const std::string first = WithFields("first\n", 0, (size_t{16} << 10) - cut - least);
    ASSERT_EQ(first.size() + cut, size_t{16} << 10);
    EXPECT_EQ(AllBytes(WriteScratch(directory / "h.gz", first + last)), "first\nlast\n") << cut;
    for (const size_t missing : {size_t{1}, last.size() - 5}) {
      const Path path =
          WriteScratch(directory / "t.gz", first + last.substr(0, last.size() - missing));
      DataErrorOf([&] { AllBytes(path); });
    }
  }
  // Longer than the first block.
  const Path path = WriteScratch(directory / "l.gz", WithFields("first\n", 60000, 100000) + last);
  EXPECT_EQ(AllBytes(path), "first\nlast\n");
}

TEST(ByteSource, NeverTakesATruncatedFileForAWholeOne) {
  const Path directory = ScratchDirectory("truncated");
  const std::string whole = Gzip(LongText());
  int refused = 0;
  const auto try_length = [&](size_t length) {
    const Path path = WriteScratch(directory / "t.json.gz", whole.substr(0, length));
    const std::string message = DataErrorOf([&] { AllBytes(path, 1 << 16); });
    EXPECT_NE(message.find("t.json.gz: byte "), std::string::npos) << message;
    ++refused;
  };
  for (size_t length = 1; length < 40; ++length) try_length(length);
  for (size_t i = 1; i < 200; ++i) try_length(whole.size() * i / 200);
  for (size_t cut = 1; cut < 40; ++cut) try_length(whole.size() - cut);
  EXPECT_EQ(refused, 39 + 199 + 39);
  const std::string two = Gzip("first\n") + whole;
  for (size_t cut = 1; cut < 30; ++cut) {
    const Path path = WriteScratch(directory / "two.gz", two.substr(0, two.size() - cut));
    DataErrorOf([&] { AllBytes(path); });
  }
  const size_t border = Gzip("first\n").size();
  for (size_t extra = 1; extra < 25; ++extra) {
    const Path path = WriteScratch(directory / "two.gz", two.substr(0, border + extra));
    DataErrorOf([&] { AllBytes(path); });
  }
}

TEST(ByteSource, NamesTruncationAndItsPlace) {
  const Path directory = ScratchDirectory("truncation_message");
  const std::string whole = Gzip(LongText());
  const Path path = WriteScratch(directory / "t.json.gz", whole.substr(0, 5000));
  EXPECT_EQ(DataErrorOf([&] { AllBytes(path); }),
            path.string() + ": byte 5000: gzip data ends early (truncated file)");
}

// Every flipped byte of the deflate data and of the checks after it must be found; in the header
// only the name, time and system fields may differ.
TEST(ByteSource, FindsFlippedBytes) {
  const Path directory = ScratchDirectory("flipped");
  const std::string text = LongText().substr(0, 20000);
  const std::string whole = Gzip(text);
  for (size_t i = 10; i < whole.size(); i += 1 + whole.size() / 200) {
    std::string flipped = whole;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x10);
    const Path path = WriteScratch(directory / "f.gz", flipped);
    DataErrorOf([&] { AllBytes(path); });
  }
  std::string wrong_crc = whole;
  wrong_crc[whole.size() - 8] ^= 1;
  const Path path = WriteScratch(directory / "crc.gz", wrong_crc);
  EXPECT_NE(DataErrorOf([&] { AllBytes(path); }).find("gzip checksum does not match the data"),
            std::string::npos);
}

TEST(ByteSource, RefusesOtherContent) {
  const Path directory = ScratchDirectory("other_content");
  const Path plain = WriteScratch(directory / "plain.json.gz", "{\"text\":\"a\"}\n");
  EXPECT_EQ(DataErrorOf([&] { AllBytes(plain); }),
            plain.string() + ": byte 0: not a gzip file, although its name ends in .gz");
  const Path nothing = WriteScratch(directory / "nothing.json.gz", "");
  EXPECT_EQ(DataErrorOf([&] { AllBytes(nothing); }),
            nothing.string() + ": byte 0: empty file, although its name ends in .gz");
  const std::string zipped = Gzip("abc\n");
  for (const std::string junk : {"x", "junk", "\x1f"}) {
    const Path path = WriteScratch(directory / "junk.gz", zipped + junk);
    EXPECT_EQ(DataErrorOf([&] { AllBytes(path); }),
              fmt::format("{}: byte {}: bytes after the last gzip member that are not gzip",
                          path.string(), zipped.size()));
  }
  const Path zeros = WriteScratch(directory / "zeros.gz", zipped + std::string(600, '\0'));
  EXPECT_NE(DataErrorOf([&] { AllBytes(zeros); }).find("not gzip"), std::string::npos);
  EXPECT_NE(DataErrorOf([&] { OpenByteSource(directory); }).find("directory"), std::string::npos);
}

}  // namespace
}  // namespace syntra
