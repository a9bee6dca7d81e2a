// SPDX-License-Identifier: Apache-2.0
// Parquet files, in builds with and without Apache Arrow.
#include "data/record_formats.h"
#include "tests/data/corpus_files.h"
#include "tests/data/read_records.h"

namespace syntra {
namespace {

Path Fixture(const char* name) { return Path(SYNTRA_SOURCE_DIR) / "tests/data/parquet" / name; }

class Parquet : public testing::Test {
 protected:
  void SetUp() override {
    if (!ReadsParquet()) GTEST_SKIP() << "this build has no Apache Arrow (SYNTRA_PARQUET)";
  }
};

TEST_F(Parquet, ReadsAColumnOverRowGroups) {
  const auto rows = ReadAll(Fixture("documents.parquet"));
  ASSERT_EQ(rows.size(), 26u);
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(rows[i].text, fmt::format("document {}", i));
    EXPECT_EQ(rows[i].fault, RecordFault::kNone);
  }
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i].line, i + 1);
  EXPECT_EQ(rows[20].fault, RecordFault::kNullText);
  EXPECT_EQ(rows[21].text, "");
  EXPECT_EQ(rows[21].fault, RecordFault::kNone);
  EXPECT_EQ(rows[22].text, "zwölf Boxkämpfer");
  EXPECT_EQ(rows[25].text, "same");
  EXPECT_EQ(ReadAll(Fixture("documents.parquet"), "meta.lang").size(), 26u);
  const auto required = ReadAll(Fixture("required.parquet"), "content");
  ASSERT_EQ(required.size(), 2u);
  EXPECT_EQ(required[1].text, "two");
}

TEST_F(Parquet, TheContentTellsWhereTheNameDoesNot) {
  const Path path = WriteScratch(ScratchDirectory("parquet_content") / "part-0",
                                 ReadWholeFile(Fixture("required.parquet")));
  EXPECT_EQ(ReadAll(path, "content").size(), 2u);
}

TEST_F(Parquet, OtherColumnsAreNamed) {
  const Path path = Fixture("documents.parquet");
  EXPECT_EQ(
      DataErrorOf([&] { ReadAll(path, "content"); }),
      path.string() +
          ": there is no column \"content\"; its columns are \"id\", \"text\", \"meta.lang\", "
          "\"tags.list.element\". Set data.text_field to the column that holds the text");
  EXPECT_EQ(DataErrorOf([&] { ReadAll(path, "id"); }),
            path.string() + ": column \"id\" does not hold text but INT64");
  EXPECT_EQ(DataErrorOf([&] { ReadAll(path, "tags.list.element"); }),
            path.string() + ": column \"tags.list.element\" does not hold text but lists");
}

// Cut anywhere, or with any byte of a page changed, the file is refused or read as it was.
TEST_F(Parquet, DamageIsRefused) {
  const std::string whole = ReadWholeFile(Fixture("documents.parquet"));
  const auto rows = ReadAll(Fixture("documents.parquet"));
  const Path path = ScratchDirectory("parquet_damage") / "a.parquet";
  for (size_t length = 0; length < whole.size(); length += 1 + whole.size() / 100) {
    WriteScratch(path, whole.substr(0, length));
    DataErrorOf([&] { ReadAll(path); });
  }
  int refused = 0;
  for (size_t i = 4; i < whole.size(); i += 1 + whole.size() / 300) {
    std::string flipped = whole;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x10);
    WriteScratch(path, flipped);
    try {
      // The file's description has no checksum, so a name in it may change; texts may not.
      for (const auto& row : ReadAll(path)) {
        EXPECT_NE(std::find(rows.begin(), rows.end(), row), rows.end()) << row.text;
      }
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kData) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, 50);
}

TEST(ParquetRefused, SaysWhatToDoWithoutArrow) {
  if (ReadsParquet()) GTEST_SKIP() << "this build reads Parquet";
  const Path directory = ScratchDirectory("no_parquet");
  for (const char* name : {"a.parquet", "content_tells"}) {
    const Path path = WriteScratch(directory / name, "PAR1");
    const std::string message = DataErrorOf([&] { OpenRecordReader(path, "text"); });
    EXPECT_TRUE(message.starts_with(path.string() + ": this build of syntra does not read Parquet"))
        << message;
    EXPECT_NE(message.find("-DSYNTRA_PARQUET=ON"), std::string::npos) << message;
    EXPECT_NE(message.find("read_parquet"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace syntra
