// SPDX-License-Identifier: Apache-2.0
// Records with several fields.
#include "data/record_reader.h"
#include "tests/data/corpus_files.h"

namespace syntra {
namespace {

using Fields = std::vector<std::optional<std::string>>;

// The fields of all records; of a bad one, its reason.
std::vector<Fields> ReadTable(std::string_view content, const TableFormat& format,
                              std::vector<TableField> wanted) {
  const Path path = WriteScratch(ScratchDirectory("table") / "a", content);
  const std::unique_ptr<RecordReader> reader = OpenTable(path, format, std::move(wanted));
  std::vector<Fields> records;
  for (Record record; reader->Next(&record);) {
    EXPECT_TRUE(record.text.empty());
    if (record.fault == RecordFault::kNone) {
      records.emplace_back(record.fields.begin(), record.fields.end());
    } else {
      EXPECT_TRUE(record.fields.empty());
      records.push_back({fmt::format("{}; {}", ReasonOf(record.fault), record.detail)});
    }
  }
  return records;
}

constexpr TableFormat kTsvTable{.kind = TableFormat::Kind::kTsv};
constexpr TableFormat kCsvTable{.kind = TableFormat::Kind::kCsv};
constexpr TableFormat kJsonTable{.kind = TableFormat::Kind::kJsonLines};

TEST(Table, FieldsComeInTheOrderOfTheQuestion) {
  const std::vector<TableField> wanted = {{"c"}, {"a"}, {"c"}, {"d", /*optional=*/true}};
  const std::vector<Fields> expected = {{"3", "1", "3", std::nullopt}};
  EXPECT_EQ(ReadTable("a\tb\tc\n1\t2\t3\n", kTsvTable, wanted), expected);
  EXPECT_EQ(ReadTable("a,b,c\n1,\"2\",\"3\"\n", kCsvTable, wanted), expected);
  EXPECT_EQ(ReadTable(R"({"a":1,"c":"3","d":null})", kJsonTable, wanted), expected);
}

TEST(Table, ColumnsHaveNumbersWithoutAHeader) {
  const std::string too_few =
      "row has more or fewer fields than there are columns; 1 field for 2 columns; a field of a "
      "tsv file cannot have tabs or newlines, in quotes neither; one of a csv file can";
  TableFormat format = kTsvTable;
  format.header = false;
  EXPECT_EQ(ReadTable("x\ty\r\nz\t\n", format, {{"2"}, {"1"}, {"id", true}}),
            (std::vector<Fields>{{"y", "x", std::nullopt}, {"", "z", std::nullopt}}));
  EXPECT_EQ(ReadTable("x\ty\nz\n", format, {{"1"}}), (std::vector<Fields>{{"x"}, {too_few}}));
  EXPECT_EQ(ReadTable("x\n", format, {{"2"}}),
            (std::vector<Fields>{{"a field is missing; column 2 of 1"}}));
  // A bad row at the beginning says nothing of the others.
  const std::string missing = "a field is missing; column 2 of 1";
  EXPECT_EQ(ReadTable("x\ny\tz\nz\ty\nq\n", format, {{"2"}}),
            (std::vector<Fields>{{missing}, {"z"}, {"y"}, {too_few}}));
  TableFormat csv = kCsvTable;
  csv.header = false;
  EXPECT_EQ(ReadTable("\"x\"y\na,b,c\n", csv, {{"3"}}).back(), Fields{"c"});
  EXPECT_EQ(ReadTable("\xff,b,c,d\na,b,c\n", csv, {{"1"}}).back(), Fields{"a"});
  for (const char* name : {"text", "0", "-1", "99999999999"}) {
    EXPECT_NE(DataErrorOf([&] { ReadTable("x\n", format, {{name}}); }).find("called 1, 2, ..."),
              std::string::npos);
  }
}

TEST(Table, JsonValuesAreText) {
  EXPECT_EQ(ReadTable(R"({"a":true,"b":-2,"c":{"d":[1,"x"]},"e.f":"g"})", kJsonTable,
                      {{"a"}, {"b"}, {.name = "c.d", .nested = true}, {"e.f"}}),
            (std::vector<Fields>{{"true", "-2", "[1,\"x\"]", "g"}}));
  EXPECT_EQ(ReadTable("{\"a\":1}\n[]\n{\"b\":\"\\u0000\"}\n", kJsonTable, {{"b"}}),
            (std::vector<Fields>{{"a field is missing; \"b\"; its fields are \"a\""},
                                 {"line is JSON but not an object; "},
                                 {"text contains a NUL character; "}}));
}

// Their JSON text is hardly what a model should read.
TEST(Table, NestedJsonValuesAreBad) {
  const std::string bad = "invalid value in a field; ";
  const std::vector<TableField> wanted = {{"a"}, {"b", /*optional=*/true}};
  EXPECT_EQ(ReadTable("{\"a\":{\"c\":1,\"d\":2}}\n{\"a\":[\"x\"]}\n{\"a\":1,\"b\":{}}\n"
                      "{\"a\":1.5,\"c\":[]}\n",
                      kJsonTable, wanted),
            (std::vector<Fields>{{bad + "\"a\" is an object; its fields are \"c\", \"d\""},
                                 {bad + "\"a\" is a list"},
                                 {bad + "\"b\" is an object; the object is empty"},
                                 {"1.5", std::nullopt}}));
  EXPECT_EQ(ReadTable("{\"a\":{\"c\":1}}\n", kJsonTable, {{"a.c"}}), (std::vector<Fields>{{"1"}}));
}

TEST(Table, AWantedJsonFieldOccursOnce) {
  const std::string again = "a field occurs more than once; ";
  const std::vector<TableField> wanted = {{"a.b"}, {"c", /*optional=*/true}};
  EXPECT_EQ(ReadTable("{\"a\":{\"b\":1},\"d\":2,\"d\":3}\n"
                      "{\"a\":{\"b\":1,\"b\":1}}\n"
                      "{\"a\":{\"b\":1},\"a\":{\"b\":1}}\n"
                      "{\"a\":{\"b\":1},\"c\":null,\"c\":2}\n",
                      kJsonTable, wanted),
            (std::vector<Fields>{{"1", std::nullopt},
                                 {again + "\"a.b\"; its fields are \"a\""},
                                 {again + "\"a.b\"; its fields are \"a\", \"a\""},
                                 {again + "\"c\"; its fields are \"a\", \"c\", \"c\""}}));
}

TEST(Table, FormatOfAName) {
  EXPECT_EQ(TableFormatOf("a/b.csv.gz")->kind, TableFormat::Kind::kCsv);
  EXPECT_EQ(TableFormatOf("b.json")->kind, TableFormat::Kind::kJsonLines);
  EXPECT_FALSE(TableFormatOf("b.txt"));
  EXPECT_FALSE(TableFormatOf("b"));
}

}  // namespace
}  // namespace syntra
