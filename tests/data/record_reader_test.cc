// SPDX-License-Identifier: Apache-2.0
#include "data/record_reader.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "base/tfrecord.h"
#include "data/line_reader.h"
#include "data/text_stream.h"
#include "tests/base/captured_log.h"
#include "tests/base/error_of.h"
#include "tests/data/corpus_files.h"
#include "tests/data/read_records.h"

namespace syntra {
namespace {

using std::string_literals::operator""s;
using testing::AnyOf;
using testing::HasSubstr;

RecordFault FaultOfLine(std::string_view line) {
  const Path path = ScratchDirectory("fault") / "a.json";
  WriteScratch(path, line);
  const std::vector<ReadRecord> reads = ReadAll(path);
  EXPECT_EQ(reads.size(), 1u);
  return reads.empty() ? RecordFault::kNone : reads[0].fault;
}

TEST(JsonReader, GivesTextAndPlace) {
  const Path directory = ScratchDirectory("json");
  const std::string content =
      "{\"text\":\"one\",\"url\":\"u\"}\n{\"url\":\"u\",\"text\":\"tw\\u00f6\\n\"}\n{\"text\":"
      "\"\"}";
  const std::vector<ReadRecord> expected = {{"one", 0, 1, RecordFault::kNone},
                                            {"twö\n", 25, 2, RecordFault::kNone},
                                            {"", 57, 3, RecordFault::kNone}};
  EXPECT_EQ(ReadAll(WriteScratch(directory / "a.json", content)), expected);
  const std::vector<ReadRecord> spaced = {{"one", 3, 3, RecordFault::kNone},
                                          {"two", 21, 5, RecordFault::kNone}};
  EXPECT_EQ(ReadAll(WriteScratch(directory / "spaced.json",
                                 "\r\n\n{\"text\":\"one\"}\n \t\n{\"text\":\"two\"}\n\n")),
            spaced);
  EXPECT_EQ(ReadAll(WriteScratch(directory / "a.jsonl", content)), expected);
  EXPECT_EQ(ReadAll(WriteScratch(directory / "a.json.gz", Gzip(content))), expected);
  EXPECT_EQ(ReadAll(WriteScratch(directory / "content_tells", content)), expected);
  EXPECT_EQ(ReadAll(directory / "a.json", "url")[1].text, "u");
}

TEST(JsonReader, NamesEveryFault) {
  EXPECT_EQ(FaultOfLine("{\"text\":\"a\"}\n"), RecordFault::kNone);
  EXPECT_EQ(FaultOfLine("{\"text\":\"a\"}"), RecordFault::kNone);
  EXPECT_EQ(FaultOfLine("{\"text\":\"a\", @@@}\n"), RecordFault::kNotJson);
  EXPECT_EQ(FaultOfLine("{\"text\":\"a\"} {\"text\":\"b\"}\n"), RecordFault::kNotJson);
  EXPECT_EQ(FaultOfLine("{\"text\":\"a\x01\"}\n"), RecordFault::kNotJson);
  EXPECT_EQ(FaultOfLine("{\"text\":\"\\ud800\"}\n"), RecordFault::kNotJson);
  EXPECT_EQ(FaultOfLine("{\"text\":\"a"), RecordFault::kTruncatedLine);
  EXPECT_EQ(FaultOfLine("{\"text\":\"a\n"), RecordFault::kNotJson);
  EXPECT_EQ(FaultOfLine("{\"text\":\"\xff\"}\n"), RecordFault::kNotUtf8);
  EXPECT_EQ(FaultOfLine("{\"text\":\"\xc0\xaf\"}\n"), RecordFault::kNotUtf8);
  EXPECT_EQ(FaultOfLine("{\"text\":\"\xed\xa0\x80\"}\n"), RecordFault::kNotUtf8);
  EXPECT_EQ(FaultOfLine("{\"text\":\"a\\u0000b\"}\n"), RecordFault::kNulCharacter);
  EXPECT_EQ(FaultOfLine("{\"url\":\"a\"}\n"), RecordFault::kMissingText);
  EXPECT_EQ(FaultOfLine("{}\n"), RecordFault::kMissingText);
  EXPECT_EQ(FaultOfLine("{\"text\":\"a\",\"text\":\"b\"}\n"), RecordFault::kRepeatedField);
  EXPECT_EQ(FaultOfLine("{\"text\":\"a\",\"url\":\"a\",\"url\":\"b\"}\n"), RecordFault::kNone);
  EXPECT_EQ(FaultOfLine("{\"text\":null}\n"), RecordFault::kNullText);
  EXPECT_EQ(FaultOfLine("{\"text\":1}\n"), RecordFault::kTextNotAString);
  EXPECT_EQ(FaultOfLine("{\"text\":[\"a\"]}\n"), RecordFault::kTextNotAString);
  EXPECT_EQ(FaultOfLine("[1]\n"), RecordFault::kNotAnObject);
  EXPECT_EQ(FaultOfLine("\"text\"\n"), RecordFault::kNotAnObject);
  EXPECT_EQ(FaultOfLine("{\"text\":" + std::string(5000, '[') + "\n"), RecordFault::kNotJson);
}

TEST(LineReader, SkipsLinesBeyondItsCap) {
  const Path directory = ScratchDirectory("long_line");
  std::string content = "{\"text\":\"before\"}\n{\"text\":\"";
  content.append(kMaxRecordBytes, 'x');
  content += "\"}\n{\"text\":\"after\"}\n";
  const Path path = WriteScratch(directory / "long.json", content);
  const std::vector<ReadRecord> reads = ReadAll(path);
  ASSERT_EQ(reads.size(), 3u);
  EXPECT_EQ(reads[1], (ReadRecord{"", 18, 2, RecordFault::kLineTooLong}));
  EXPECT_EQ(reads[2].text, "after");
  EXPECT_EQ(reads[2].line, 3);
  EXPECT_EQ(reads[2].offset, static_cast<int64_t>(content.size()) - 17);
}

TEST(LineReader, TakesALineOfExactlyTheCap) {
  const Path directory = ScratchDirectory("cap_line");
  const std::string line(kMaxRecordBytes, 'x');
  LineReader lines(OpenByteSource(WriteScratch(directory / "cap.txt", line + "\n" + line + "y")));
  Line read;
  ASSERT_TRUE(lines.Next(&read));
  EXPECT_EQ(read.text.size(), kMaxRecordBytes);
  ASSERT_TRUE(lines.Next(&read));
  EXPECT_TRUE(read.too_long);
  EXPECT_FALSE(lines.Next(&read));
}

TEST(TextReader, GivesADocumentALine) {
  const Path directory = ScratchDirectory("text");
  const std::string content = "one\r\n\n \t\ntwo\nbad\xff\na"s + '\0' + "b\nlast";
  const std::vector<ReadRecord> expected = {{"one", 0, 1, RecordFault::kNone},
                                            {"two", 9, 4, RecordFault::kNone},
                                            {"", 13, 5, RecordFault::kNotUtf8},
                                            {"", 18, 6, RecordFault::kNulCharacter},
                                            {"last", 22, 7, RecordFault::kNone}};
  EXPECT_EQ(ReadAll(WriteScratch(directory / "a.txt", content)), expected);
  EXPECT_EQ(ReadAll(WriteScratch(directory / "a.txt.gz", Gzip(content))), expected);
  EXPECT_TRUE(ReadAll(WriteScratch(directory / "empty.txt", "")).empty());
}

// Where all of a file is one line, its author will have meant others. A carriage return among
// lines, or at the end, says nothing.
TEST(TextStream, WarnsOfLineEndsOfOldMacs) {
  const Path directory = ScratchDirectory("line_ends");
  int files = 0;
  const auto warnings = [&](const char* name, const std::string& content) {
    const Path path = WriteScratch(directory / (std::to_string(files++) + name), content);
    const CapturedLog log;
    // As where a file is checked before it is read: the second time says nothing new.
    for (int times = 0; times < 2; ++times) {
      TextStream stream(OpenByteSource(path));
      while (stream.ReadMore()) {
        if (!content.starts_with("keep")) stream.Take(stream.unread().size());
      }
    }
    for (const std::string& warning : log.Warnings()) {
      EXPECT_TRUE(warning.starts_with(path.string() + ": it has carriage returns and no newline"));
    }
    return log.Warnings().size();
  };
  const std::string long_line(kFirstBlockBytes - 1, 'a');
  for (const std::string& macs : {"one\rtwo"s, "one\rtwo\r"s, "\rone"s, "keep\rit\r"s,
                                  long_line + "\rb", long_line + "a\rb", long_line + "a\r\r"}) {
    EXPECT_EQ(warnings("a.txt", macs), 1u) << macs.substr(0, 20);
    EXPECT_EQ(warnings("a.txt.gz", Gzip(macs)), 1u) << macs.substr(0, 20);
  }
  for (const std::string& others : {""s, "one"s, "one\r"s, "one\r\n"s, "one\rtwo\n"s,
                                    "one\ntwo\rthree"s, long_line + "\r", long_line + "\r\nb\rc"}) {
    EXPECT_EQ(warnings("a.txt", others), 0u) << others.substr(0, 20);
  }
}

constexpr std::string_view kMark = "\xEF\xBB\xBF";

// A byte-order mark is no part of the first record, in any format, zipped or not; places still
// count its bytes.
TEST(ByteOrderMark, IsSkippedAtTheStart) {
  const Path directory = ScratchDirectory("byte_order_mark");
  const std::pair<const char*, std::string> contents[] = {
      {"a.json", "{\"text\":\"one\"}\n{\"text\":\"two\"}\n"},
      {"a.txt", "one\ntwo\n"},
      {"content_tells", "{\"text\":\"one\"}\n{\"text\":\"two\"}\n"}};
  for (const auto& [name, content] : contents) {
    const std::vector<ReadRecord> plain = ReadAll(WriteScratch(directory / name, content));
    const std::string marked = std::string(kMark) + content;
    for (const std::string& bytes : {marked, Gzip(marked), Gzip("") + Gzip(marked)}) {
      const std::vector<ReadRecord> reads = ReadAll(WriteScratch(directory / name, bytes));
      ASSERT_EQ(reads.size(), 2u) << name;
      for (size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(reads[i], (ReadRecord{plain[i].text, plain[i].offset + 3, plain[i].line,
                                        RecordFault::kNone}));
      }
    }
  }
  EXPECT_TRUE(ReadAll(WriteScratch(directory / "only.txt", kMark)).empty());
}

// Elsewhere it is what joining files leaves.
TEST(ByteOrderMark, InsideAFileIsABadRecord) {
  const Path directory = ScratchDirectory("byte_order_mark_inside");
  const std::string mark(kMark);
  EXPECT_EQ(ReadAll(WriteScratch(directory / "a.txt", "one\n" + mark + "two\n"))[1].fault,
            RecordFault::kByteOrderMark);
  const std::string line = "{\"text\":\"a\"}\n";
  EXPECT_EQ(ReadAll(WriteScratch(directory / "a.json", line + mark + line))[1].fault,
            RecordFault::kByteOrderMark);
}

TEST(ByteOrderMark, OfOtherEncodingsSaysWhatToDo) {
  const Path directory = ScratchDirectory("other_encodings");
  const std::pair<std::string, const char*> marks[] = {{"\xFF\xFEo\0\n\0"s, "UTF-16"},
                                                       {"\xFE\xFF\0o\0\n"s, "UTF-16"},
                                                       {"\xFF\xFE\0\0o\0\0\0"s, "UTF-32"},
                                                       {"\0\0\xFE\xFF\0\0\0o"s, "UTF-32"}};
  for (const auto& [bytes, encoding] : marks) {
    for (const char* name : {"a.json", "a.txt", "a.csv", "a.tsv"}) {
      const Path path = WriteScratch(directory / name, bytes);
      EXPECT_EQ(DataErrorOf([&] { ReadAll(path); }),
                fmt::format("{}: byte 0: the text is {}, as its byte-order mark says; convert it "
                            "to UTF-8, for example with \"iconv -f {} -t UTF-8\"",
                            path.string(), encoding, encoding));
    }
  }
}

// The fields that there are stand in the message of a record without the wanted one.
TEST(RecordReader, NamesTheFieldsThatThereAre) {
  const Path directory = ScratchDirectory("field_names");
  const auto detail_of = [](const Path& path) {
    Record record;
    EXPECT_TRUE(OpenRecordReader(path, "text")->Next(&record));
    EXPECT_EQ(record.fault, RecordFault::kMissingText);
    return record.detail;
  };
  EXPECT_EQ(detail_of(WriteScratch(directory / "a.json", "{\"url\":1,\"content\":\"x\"}\n")),
            "its fields are \"url\", \"content\"");
  EXPECT_EQ(detail_of(WriteScratch(directory / "b.json", "{}\n")), "the object is empty");
  EXPECT_EQ(
      detail_of(WriteScratch(directory / "a.tfrecord", FrameTfRecord(TfExample("content", "x")))),
      "its features are \"content\"");
}

TEST(RecordReader, FilesOfAnotherKindAreRefused) {
  const Path directory = ScratchDirectory("kinds");
  for (const char* name : {"a.json", "a.txt", "a.tfrecord", "a.csv", "a.tsv", "content_tells"}) {
    const Path fifo = directory / name;
    ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
    EXPECT_EQ(DataErrorOf([&] { OpenRecordReader(fifo, "text"); }),
              "cannot read " + fifo.string() + ": it is a FIFO, not a file");
  }
  for (const char* device : {"/dev/null", "/dev/zero"}) {
    EXPECT_EQ(DataErrorOf([&] { OpenRecordReader(device, "text"); }),
              fmt::format("cannot read {}: it is a device, not a file", device));
  }
}

TEST(RecordReader, OtherCompressionIsNamed) {
  const Path directory = ScratchDirectory("compressed");
  for (const auto& [begin, program] : {std::pair<std::string, const char*>{"BZh91AY&SY", "bzip2"},
                                       {"\xFD"
                                        "7zXZ",
                                        "xz"},
                                       {"\x28\xB5\x2F\xFD", "zstd"},
                                       {"PK\x03\x04", "zip"}}) {
    const Path path = WriteScratch(directory / "a.txt", begin + "and so on");
    EXPECT_EQ(DataErrorOf([&] { OpenRecordReader(path, "text"); }),
              fmt::format("{} is compressed by {}; compress it by gzip instead, or not at all",
                          path.string(), program));
  }
}

TEST(RecordReader, NamesOfNumberedShardsTellTheFormat) {
  const Path directory = ScratchDirectory("numbered");
  const std::string line = "{\"text\":\"a\"}\n";
  EXPECT_EQ(ReadAll(WriteScratch(directory / "c.jsonl-00000-of-00001", line))[0].text, "a");
  EXPECT_EQ(ReadAll(WriteScratch(directory / "c.ndjson", line))[0].text, "a");
  EXPECT_EQ(ReadAll(WriteScratch(directory / "c.txt-00000-of-00001", "{}\n"))[0].text, "{}");
}

TEST(RecordReader, UnknownContentIsAnError) {
  const Path path = WriteScratch(ScratchDirectory("unknown") / "data.bin", "plain words\n");
  EXPECT_NE(DataErrorOf([&] { OpenRecordReader(path, "text"); }).find("tell its format"),
            std::string::npos);
}

TEST(TfRecordReader, GivesTextAndPlace) {
  const Path directory = ScratchDirectory("tfrecord");
  const std::string first = FrameTfRecord(TfExample("text", "one"));
  const std::string content = first + FrameTfRecord(TfExample("url", "two")) +
                              FrameTfRecord("\xff\xff") + FrameTfRecord(TfExample("text", "\xff")) +
                              FrameTfRecord(TfExample("text", "end"));
  for (const char* name : {"c4-train.tfrecord-00000-of-00008", "content_tells"}) {
    const std::vector<ReadRecord> reads = ReadAll(WriteScratch(directory / name, content));
    ASSERT_EQ(reads.size(), 5u);
    EXPECT_EQ(reads[0], (ReadRecord{"one", 0, 1, RecordFault::kNone}));
    EXPECT_EQ(reads[1].fault, RecordFault::kMissingText);
    EXPECT_EQ(reads[1].offset, static_cast<int64_t>(first.size()));
    EXPECT_EQ(reads[2].fault, RecordFault::kNotAnExample);
    EXPECT_EQ(reads[3].fault, RecordFault::kNotUtf8);
    EXPECT_EQ(reads[4].text, "end");
    EXPECT_EQ(reads[4].line, 5);
  }
}

TEST(TfRecordReader, DamageToFramingFails) {
  const Path directory = ScratchDirectory("tfrecord_damage");
  const std::string frame = FrameTfRecord(TfExample("text", "some words"));
  const std::string content = frame + frame;
  const auto message_of = [&](const std::string& bytes) {
    const Path path = WriteScratch(directory / "a.tfrecord", bytes);
    const std::string message = DataErrorOf([&] { ReadAll(path); });
    const std::string place = fmt::format("{}: byte {}, record 2: ", path.string(), frame.size());
    EXPECT_TRUE(message.starts_with(place)) << message;
    return message.substr(std::min(place.size(), message.size()));
  };
  for (size_t length = frame.size() + 1; length < content.size(); ++length) {
    EXPECT_NE(message_of(content.substr(0, length)).find("(truncated file)"), std::string::npos);
  }
  for (size_t i = frame.size(); i < content.size(); ++i) {
    std::string flipped = content;
    flipped[i] = static_cast<char>(flipped[i] ^ 1);
    EXPECT_EQ(message_of(flipped), i < frame.size() + 12 ? "TFRecord length checksum does not match"
                                                         : "TFRecord data checksum does not match");
  }
}

TEST(RecordReader, SampleHoldsItsDocuments) {
  EXPECT_EQ(ReadAll(SamplePath("c4-train.00000-of-00001.json.gz")).size(), 1000u);
  EXPECT_EQ(ReadAll(SamplePath("c4-validation.00000-of-00001.json.gz")).size(), 200u);
}

TEST(RecordReader, TfRecordsAndJsonOfC4HoldTheSameTexts) {
  SYNTRA_NEEDS_SHARED_DATA();
  std::vector<std::string> json, records;
  for (const ReadRecord& read : ReadAll(SamplePath("c4-train.00000-of-00001.json.gz"))) {
    json.push_back(read.text);
  }
  for (int shard = 0; shard < 8; ++shard) {
    const Path path =
        SharedDataPath() / "c4/tfrecord" / fmt::format("c4-train.tfrecord-{:05}-of-00008", shard);
    for (const ReadRecord& read : ReadAll(path)) {
      EXPECT_EQ(read.fault, RecordFault::kNone);
      records.push_back(read.text);
    }
  }
  EXPECT_EQ(json, records);
}

Record BadRecord(int64_t offset, int64_t line, RecordFault fault) {
  return {.offset = offset, .line = line, .fault = fault};
}

// What the parser cannot hold is no damage, so the reason says what it met.
TEST(JsonReader, AFileThatIsOneDocumentIsRefused) {
  for (const char* text : {"[\n  {\"text\": \"a\"},\n  {\"text\": \"b\"}\n]\n",
                           "[{\"text\": \"a\"}]", "{\n  \"text\": \"a\"\n}\n"}) {
    const Path path = WriteScratch(ScratchDirectory("document") / "a.json", text);
    const std::string error = ErrorOf(
        [&] {
          Record record;
          OpenRecordReader(path, "text")->Next(&record);
        },
        ExitCode::kData);
    EXPECT_NE(error.find("a.json is one JSON document"), std::string::npos) << error;
  }
}

TEST(JsonReader, SaysWhyItCannotReadALine) {
  for (const char* number : {"10000000000000000000000000", "1e400"}) {
    const Path path = WriteScratch(ScratchDirectory("numbers") / "a.json",
                                   fmt::format("{{\"id\":{},\"text\":\"a\"}}\n", number));
    const std::vector<ReadRecord> records = ReadAll(path);
    ASSERT_EQ(records.size(), 1u);
    EXPECT_EQ(records[0].fault, RecordFault::kNotJson);
    // "number" or, from simdjson 3.2 on, "BIGINT_ERROR".
    EXPECT_THAT(records[0].detail, AnyOf(HasSubstr("number"), HasSubstr("BIGINT")));
  }
}

TEST(BadRecordLedger, AppliesItsPolicy) {
  BadRecordLedger strict("f.json", {.fail = true});
  EXPECT_EQ(DataErrorOf([&] { strict.CountBad(BadRecord(70, 3, RecordFault::kNullText)); }),
            "f.json: byte 70, line 3: the field of data.text_field is null");

  BadRecordLedger none("f.json", {.max_fraction = 0});
  none.CountBad(BadRecord(70, 3, RecordFault::kNullText));
  EXPECT_NE(DataErrorOf([&] { none.Finish(); }).find("the first is f.json: byte 70, line 3"),
            std::string::npos);

  BadRecordLedger some("f.json", {.max_fraction = 0.02});
  for (int i = 0; i < 98; ++i) some.CountGood();
  some.CountBad(BadRecord(1, 1, RecordFault::kNotJson));
  some.CountBad(BadRecord(2, 2, RecordFault::kNotUtf8));
  EXPECT_NO_THROW(some.Finish());
  EXPECT_EQ(some.bad(), 2);
  EXPECT_EQ(some.count(RecordFault::kNotUtf8), 1);
  some.CountBad(BadRecord(3, 3, RecordFault::kNotUtf8));
  const std::string message = DataErrorOf([&] { some.Finish(); });
  EXPECT_NE(message.find("3 of 101 records are bad"), std::string::npos) << message;
  EXPECT_NE(
      message.find("2 x \"text is not well-formed UTF-8\", 1 x \"line cannot be read as JSON\""),
      std::string::npos)
      << message;

  // One may be bad in short files, too, where it is no large share of them.
  BadRecordLedger one("f.json", {.max_fraction = 0.0001});
  one.CountBad(BadRecord(1, 1, RecordFault::kNotJson));
  for (int i = 0; i < 8; ++i) one.CountGood();
  EXPECT_NE(DataErrorOf([&] { one.Finish(); }).find("1 of 9 records are bad, more than the 0"),
            std::string::npos);
  one.CountGood();
  EXPECT_NO_THROW(one.Finish());

  BadRecordLedger early("f.json", {.max_fraction = 0.02});
  EXPECT_NE(DataErrorOf([&] {
              for (int i = 0; i < 100000; ++i)
                early.CountBad(BadRecord(i, i, RecordFault::kNotJson));
            }).find("its first 1000 records are all bad"),
            std::string::npos);

  // The order of the records does not decide.
  BadRecordLedger late("f.json", {.max_fraction = 0.02});
  late.CountGood();
  for (int i = 0; i < 1500; ++i) late.CountBad(BadRecord(i, i, RecordFault::kNotJson));
  for (int i = 0; i < 100000; ++i) late.CountGood();
  EXPECT_NO_THROW(late.Finish());
}

}  // namespace
}  // namespace syntra
