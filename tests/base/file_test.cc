#include "base/file.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace syntra {
namespace {

Path Scratch(const char* name) {
  const Path path = Path(testing::TempDir()) / name;
  std::filesystem::remove_all(path);
  return path;
}

TEST(File, ReplaceKeepsOneWholeVersion) {
  const Path path = Scratch("replace.txt");
  ReplaceFileDurably(path, "old");
  ReplaceFileDurably(path, "new");
  EXPECT_EQ(ReadWholeFile(path), "new");
  EXPECT_THROW(File::CreateNew(path), Error);
}

TEST(File, ErrorsNamePathAndReason) {
  try {
    ReadWholeFile("/nonexistent/file");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kResources);
    EXPECT_STREQ(error.what(), "cannot read /nonexistent/file: No such file or directory");
  }
}

// Not an exception of the standard library, which would be taken for a bug.
TEST(File, PathsThatCannotBeAreErrors) {
  for (const Path path : {"/dev/null/inside", "/proc/version/inside"}) {
    EXPECT_THROW(ReplaceFileDurably(path, "x"), Error) << path;
    EXPECT_THROW(ReadWholeFile(path), Error) << path;
  }
  EXPECT_THROW(ReplaceFileDurably(std::string(5000, 'x'), "x"), Error);
  EXPECT_THROW(ReadWholeFile("/tmp"), Error);
}

TEST(File, MapsEmptyAndFullFiles) {
  const Path path = Scratch("map.bin");
  ReplaceFileDurably(path, "");
  EXPECT_TRUE(MappedFile(path).bytes().empty());
  ReplaceFileDurably(path, "abc");
  EXPECT_EQ(MappedFile(path).bytes().size(), 3u);
}

TEST(File, ReadRefusesTooLargeFiles) {
  const Path path = Scratch("large.bin");
  ReplaceFileDurably(path, std::string(100, 'x'));
  EXPECT_THROW(ReadWholeFile(path, 99), Error);
  EXPECT_EQ(ReadWholeFile(path, 100).size(), 100u);
}

}  // namespace
}  // namespace syntra
