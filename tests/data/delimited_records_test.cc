// SPDX-License-Identifier: Apache-2.0
// Comma- and tab-separated tables.
#include "tests/data/corpus_files.h"
#include "tests/data/read_records.h"

namespace syntra {
namespace {

std::vector<std::string> TextsOf(const std::vector<ReadRecord>& rows) {
  std::vector<std::string> texts;
  for (const ReadRecord& row : rows) {
    EXPECT_EQ(row.fault, RecordFault::kNone) << ReasonOf(row.fault);
    texts.push_back(row.text);
  }
  return texts;
}

std::vector<ReadRecord> ReadCsv(std::string_view content, const std::string& column = "text") {
  return ReadAll(WriteScratch(ScratchDirectory("csv") / "a.csv", content), column);
}

// The cases of RFC 4180, section 2.
TEST(Csv, ReadsWhatRfc4180Describes) {
  const std::vector<std::string> expected = {"one", "two, with \"quotes\"", "thr\r\nee\n", "",
                                             "a\"b"};
  const std::string rows = "1,one\n2,\"two, with \"\"quotes\"\"\"\n3,\"thr\r\nee\n\"\n4,\n5,a\"b\n";
  EXPECT_EQ(TextsOf(ReadCsv("id,text\n" + rows)), expected);
  // The last newline may be missing.
  EXPECT_EQ(TextsOf(ReadCsv(("id,text\n" + rows).substr(0, rows.size() + 7))), expected);
  // Names may be quoted, any column may be the wanted one, lines may end as on Windows.
  EXPECT_EQ(TextsOf(ReadCsv("\"the \"\"text\"\"\",n\r\nx,1\r\n\"y\",2\r\n", "the \"text\"")),
            (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(TextsOf(ReadCsv("text\r\nx\r\n\"y\"\r\n\r\n\nz")),
            (std::vector<std::string>{"x", "y", "z"}));
  EXPECT_EQ(TextsOf(ReadCsv("text,other\na\r,b\n")), (std::vector<std::string>{"a\r"}));
  EXPECT_TRUE(ReadCsv("id,text\n").empty());
}

TEST(Csv, GivesPlaces) {
  const std::string content = "id,text\n1,\"a\nb\"\n\n2,c\n";
  const std::vector<ReadRecord> expected = {{"a\nb", 8, 2}, {"c", 17, 5}};
  EXPECT_EQ(ReadCsv(content), expected);
  const Path directory = ScratchDirectory("csv_places");
  EXPECT_EQ(ReadAll(WriteScratch(directory / "a.csv.gz", Gzip(content))), expected);
  const std::vector<ReadRecord> marked = ReadCsv("\xEF\xBB\xBF" + content);
  EXPECT_EQ(marked, (std::vector<ReadRecord>{{"a\nb", 11, 2}, {"c", 20, 5}}));
}

// However the file is cut into blocks, the rows are the same.
TEST(Csv, RowsMayCrossBlocks) {
  std::string content = "id,text\n";
  std::vector<std::string> expected;
  for (int i = 0; i < 3000; ++i) {
    expected.push_back(fmt::format("row {}, \"with\"\nlines{}", i, std::string(i % 40, '\n')));
    std::string doubled;
    for (const char c : expected.back())
      doubled += c == '"' ? std::string("\"\"") : std::string(1, c);
    content += fmt::format("{},\"{}\"\r\n", i, doubled);
  }
  ASSERT_GT(content.size(), size_t{100000});
  EXPECT_EQ(TextsOf(ReadCsv(content)), expected);
}

TEST(Csv, MalformedRowsAreBadRecords) {
  const std::string advice = "; a field with commas or newlines must be in double quotes";
  const std::vector<ReadRecord> rows =
      ReadCsv("id,text\n1,\"a\"b\"\n2\n3,x,y\n4,\xff\n5,\"a\"\rb\n6,good\n");
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_EQ(rows[0], (ReadRecord{"", 8, 2, RecordFault::kBadQuotes}));
  EXPECT_EQ(rows[1],
            (ReadRecord{"", 16, 3, RecordFault::kFieldCount, "1 field for 2 columns" + advice}));
  EXPECT_EQ(rows[2],
            (ReadRecord{"", 18, 4, RecordFault::kFieldCount, "3 fields for 2 columns" + advice}));
  EXPECT_EQ(rows[3].fault, RecordFault::kNotUtf8);
  EXPECT_EQ(rows[4].fault, RecordFault::kBadQuotes);
  EXPECT_EQ(rows[5].text, "good");
}

// If a quoted field never ends, the rows after it cannot be told from its text.
TEST(Csv, AQuoteWithoutEndIsABadFile) {
  const Path path = WriteScratch(ScratchDirectory("csv_quote") / "a.csv", "text\na\n\"b\nc\nd\n");
  EXPECT_EQ(
      DataErrorOf([&] { ReadAll(path); }),
      path.string() +
          ": byte 7, line 3: a quoted field of the row that starts here has no end (truncated "
          "file, or a quote too many)");
}

TEST(Csv, LongRowsAreSkippedNotKept) {
  std::string content = "id,text\n1,before\n2,\"";
  content.append(kMaxRecordBytes, 'x');
  content += "\n,y\"\n3,after\n";
  const std::vector<ReadRecord> rows = ReadCsv(content);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[1], (ReadRecord{"", 17, 3, RecordFault::kLineTooLong}));
  EXPECT_EQ(rows[2].text, "after");
  EXPECT_EQ(rows[2].line, 5);
}

// The row's end may be that of the file.
TEST(Csv, TheLimitIsOfTheRowWithoutItsEnd) {
  for (const size_t size : {kMaxRecordBytes, kMaxRecordBytes + 1}) {
    for (const std::string end : {"\n", ""}) {
      const std::vector<ReadRecord> rows = ReadCsv("text\n" + std::string(size, 'x') + end);
      ASSERT_EQ(rows.size(), 1u);
      EXPECT_EQ(rows[0].fault == RecordFault::kNone, size == kMaxRecordBytes);
      EXPECT_EQ(rows[0].text.size(), size == kMaxRecordBytes ? size : 0);
    }
  }
}

TEST(Csv, ColumnsThatAreNotThereAreNamed) {
  const auto error_of = [](std::string_view content, const std::string& column = "text") {
    const std::string message = DataErrorOf([&] { ReadCsv(content, column); });
    return message.substr(message.find("a.csv: ") + 7);
  };
  EXPECT_EQ(error_of("class,title,description\n1,a,b\n"),
            "byte 0, line 1: the header row names no column \"text\"; its columns are \"class\", "
            "\"title\", \"description\". Set data.text_field to the column that holds the text; a "
            "file without a header row needs one");
  EXPECT_NE(error_of("Text\na\n").find("no column \"text\"; its columns are \"Text\""),
            std::string::npos);
  EXPECT_NE(error_of("text,text\na,b\n").find("names more than one column"), std::string::npos);
  EXPECT_EQ(error_of("label\tsentence\n1\ta\n"),
            "byte 0, line 1: the header row names no column \"text\"; its columns are "
            "\"label\\tsentence\"; it has tabs between them: name the file *.tsv");
  EXPECT_EQ(error_of(""), "it is empty; its first row must name the columns");
  EXPECT_NE(error_of("\"a\"b,text\n").find("line 1: header row: a quoted field goes on"),
            std::string::npos);
  // Neither many nor long names flood the screen.
  std::string wide(10000, 'x');
  for (int i = 0; i < 1000; ++i) wide += fmt::format(",{}", i);
  EXPECT_LT(error_of(wide + "\n").size(), 500u);
}

// Each of so many names would take memory.
TEST(Csv, AHeaderRowOfMegabytesIsRefused) {
  const Path path = WriteScratch(ScratchDirectory("csv_header") / "a.csv",
                                 std::string(3 << 20, ',') + "\ntext\n");
  const std::string error = DataErrorOf([&] { OpenRecordReader(path, "text"); });
  EXPECT_EQ(error,
            path.string() + ": its first row, which must name the columns, is longer than 1 MiB");
}

TEST(Tsv, FieldsAreTakenAsTheyAre) {
  const Path directory = ScratchDirectory("tsv");
  const std::string content = "id\ttext\r\n1\t\"a\" said, \"\"b\r\n2\t\\t\n\n3\n";
  const std::vector<ReadRecord> expected = {
      {"\"a\" said, \"\"b", 9, 2},
      {"\\t", 26, 3},
      {"", 32, 5, RecordFault::kFieldCount,
       "1 field for 2 columns; a field of a tsv file cannot have tabs or newlines, in quotes "
       "neither; one of a csv file can"}};
  EXPECT_EQ(ReadAll(WriteScratch(directory / "a.tsv", content)), expected);
  EXPECT_EQ(ReadAll(WriteScratch(directory / "a.tsv.gz", Gzip(content))), expected);
}

}  // namespace
}  // namespace syntra
