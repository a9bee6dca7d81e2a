// Parquet, in builds with Apache Arrow and without.
#include "data/record_formats.h"
#include "tests/data/corpus_files.h"

namespace syntra {
namespace {

TEST(Parquet, WithoutArrowTheRefusalSaysWhatToDo) {
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
