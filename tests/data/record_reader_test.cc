#include "data/record_reader.h"

#include "data/line_reader.h"
#include "tests/data/corpus_files.h"

namespace syntra {
namespace {

using std::string_literals::operator""s;

struct Read {
  std::string text;
  int64_t offset, line;
  RecordFault fault;
  bool operator==(const Read&) const = default;
};

void PrintTo(const Read& read, std::ostream* out) {
  *out << fmt::format("{{\"{}\" at {}, line {}, {}}}", read.text, read.offset, read.line,
                      ReasonOf(read.fault));
}

std::vector<Read> ReadAll(const Path& path, const std::string& field = "text") {
  const std::unique_ptr<RecordReader> reader = OpenRecordReader(path, field);
  std::vector<Read> reads;
  for (Record record; reader->Next(&record);) {
    reads.push_back({std::string(record.text), record.offset, record.line, record.fault});
  }
  return reads;
}

RecordFault FaultOfLine(std::string_view line) {
  const Path path = ScratchDirectory("fault") / "a.json";
  WriteScratch(path, line);
  const std::vector<Read> reads = ReadAll(path);
  EXPECT_EQ(reads.size(), 1u);
  return reads.empty() ? RecordFault::kNone : reads[0].fault;
}

TEST(JsonReader, GivesTextAndPlace) {
  const Path directory = ScratchDirectory("json");
  const std::string content =
      "{\"text\":\"one\",\"url\":\"u\"}\n{\"url\":\"u\",\"text\":\"tw\\u00f6\\n\"}\n{\"text\":"
      "\"\"}";
  const std::vector<Read> expected = {{"one", 0, 1, RecordFault::kNone},
                                      {"twö\n", 25, 2, RecordFault::kNone},
                                      {"", 57, 3, RecordFault::kNone}};
  EXPECT_EQ(ReadAll(WriteScratch(directory / "a.json", content)), expected);
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
  EXPECT_EQ(FaultOfLine("\xEF\xBB\xBF{\"text\":\"a\"}\n"), RecordFault::kByteOrderMark);
  EXPECT_EQ(FaultOfLine("{\"url\":\"a\"}\n"), RecordFault::kMissingText);
  EXPECT_EQ(FaultOfLine("{}\n"), RecordFault::kMissingText);
  EXPECT_EQ(FaultOfLine("{\"text\":null}\n"), RecordFault::kNullText);
  EXPECT_EQ(FaultOfLine("{\"text\":1}\n"), RecordFault::kTextNotAString);
  EXPECT_EQ(FaultOfLine("{\"text\":[\"a\"]}\n"), RecordFault::kTextNotAString);
  EXPECT_EQ(FaultOfLine("[1]\n"), RecordFault::kNotAnObject);
  EXPECT_EQ(FaultOfLine("\"text\"\n"), RecordFault::kNotAnObject);
  EXPECT_EQ(FaultOfLine("\n"), RecordFault::kEmptyLine);
  EXPECT_EQ(FaultOfLine("{\"text\":" + std::string(5000, '[') + "\n"), RecordFault::kNotJson);
}

TEST(LineReader, SkipsLinesBeyondItsCap) {
  const Path directory = ScratchDirectory("long_line");
  std::string content = "{\"text\":\"before\"}\n{\"text\":\"";
  content.append(LineReader::kMaxBytes, 'x');
  content += "\"}\n{\"text\":\"after\"}\n";
  const Path path = WriteScratch(directory / "long.json", content);
  const std::vector<Read> reads = ReadAll(path);
  ASSERT_EQ(reads.size(), 3u);
  EXPECT_EQ(reads[1], (Read{"", 18, 2, RecordFault::kLineTooLong}));
  EXPECT_EQ(reads[2].text, "after");
  EXPECT_EQ(reads[2].line, 3);
  EXPECT_EQ(reads[2].offset, static_cast<int64_t>(content.size()) - 17);
}

TEST(LineReader, TakesALineOfExactlyTheCap) {
  const Path directory = ScratchDirectory("cap_line");
  const std::string line(LineReader::kMaxBytes, 'x');
  LineReader lines(OpenByteSource(WriteScratch(directory / "cap.txt", line + "\n" + line + "y")));
  Line read;
  ASSERT_TRUE(lines.Next(&read));
  EXPECT_EQ(read.text.size(), LineReader::kMaxBytes);
  ASSERT_TRUE(lines.Next(&read));
  EXPECT_TRUE(read.too_long);
  EXPECT_FALSE(lines.Next(&read));
}

TEST(TextReader, GivesADocumentALine) {
  const Path directory = ScratchDirectory("text");
  const std::string content = "one\r\n\n \t\ntwo\nbad\xff\na"s + '\0' + "b\nlast";
  const std::vector<Read> expected = {{"one", 0, 1, RecordFault::kNone},
                                      {"two", 9, 4, RecordFault::kNone},
                                      {"", 13, 5, RecordFault::kNotUtf8},
                                      {"", 18, 6, RecordFault::kNulCharacter},
                                      {"last", 22, 7, RecordFault::kNone}};
  EXPECT_EQ(ReadAll(WriteScratch(directory / "a.txt", content)), expected);
  EXPECT_EQ(ReadAll(WriteScratch(directory / "a.txt.gz", Gzip(content))), expected);
  EXPECT_EQ(ReadAll(WriteScratch(directory / "bom.txt", "\xEF\xBB\xBFx\n"))[0].fault,
            RecordFault::kByteOrderMark);
  EXPECT_TRUE(ReadAll(WriteScratch(directory / "empty.txt", "")).empty());
}

TEST(RecordReader, UnknownContentIsAnError) {
  const Path path = WriteScratch(ScratchDirectory("unknown") / "data.bin", "plain words\n");
  EXPECT_NE(DataErrorOf([&] { OpenRecordReader(path, "text"); }).find("tell its format"),
            std::string::npos);
}

TEST(TfRecordReader, GivesTextAndPlace) {
  const Path directory = ScratchDirectory("tfrecord");
  const std::string first = TfRecordFrame(TfExample("text", "one"));
  const std::string content = first + TfRecordFrame(TfExample("url", "two")) +
                              TfRecordFrame("\xff\xff") + TfRecordFrame(TfExample("text", "\xff")) +
                              TfRecordFrame(TfExample("text", "end"));
  for (const char* name : {"c4-train.tfrecord-00000-of-00008", "content_tells"}) {
    const std::vector<Read> reads = ReadAll(WriteScratch(directory / name, content));
    ASSERT_EQ(reads.size(), 5u);
    EXPECT_EQ(reads[0], (Read{"one", 0, 1, RecordFault::kNone}));
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
  const std::string frame = TfRecordFrame(TfExample("text", "some words"));
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
  for (const Read& read : ReadAll(SamplePath("c4-train.00000-of-00001.json.gz"))) {
    json.push_back(read.text);
  }
  for (int shard = 0; shard < 8; ++shard) {
    const Path path =
        SharedDataPath() / "c4/tfrecord" / fmt::format("c4-train.tfrecord-{:05}-of-00008", shard);
    for (const Read& read : ReadAll(path)) {
      EXPECT_EQ(read.fault, RecordFault::kNone);
      records.push_back(read.text);
    }
  }
  EXPECT_EQ(json, records);
}

TEST(BadRecordLedger, AppliesItsPolicy) {
  BadRecordLedger strict("f.json", {.fail = true});
  EXPECT_EQ(DataErrorOf([&] { strict.CountBad(70, 3, RecordFault::kNullText); }),
            "f.json: byte 70, line 3: text field is null");

  BadRecordLedger none("f.json", {.max_fraction = 0});
  none.CountBad(70, 3, RecordFault::kNullText);
  EXPECT_NE(DataErrorOf([&] { none.Finish(); }).find("the first is f.json: byte 70, line 3"),
            std::string::npos);

  BadRecordLedger some("f.json", {.max_fraction = 0.02});
  for (int i = 0; i < 98; ++i) some.CountGood();
  some.CountBad(1, 1, RecordFault::kNotJson);
  some.CountBad(2, 2, RecordFault::kNotUtf8);
  EXPECT_NO_THROW(some.Finish());
  EXPECT_EQ(some.bad(), 2);
  EXPECT_EQ(some.count(RecordFault::kNotUtf8), 1);
  some.CountBad(3, 3, RecordFault::kNotUtf8);
  const std::string message = DataErrorOf([&] { some.Finish(); });
  EXPECT_NE(message.find("3 of 101 records are bad"), std::string::npos) << message;
  EXPECT_NE(message.find("2 x \"text is not well-formed UTF-8\", 1 x \"line is not valid JSON\""),
            std::string::npos)
      << message;

  BadRecordLedger early("f.json", {.max_fraction = 0.02});
  EXPECT_NE(DataErrorOf([&] {
              for (int i = 0; i < 100000; ++i) early.CountBad(i, i, RecordFault::kNotJson);
            }).find("1000 of 1000 records are bad"),
            std::string::npos);
}

}  // namespace
}  // namespace syntra
