// Every kind of damage to a checkpoint is found, named, and the previous checkpoint is used.
#include <gmock/gmock.h>

#include <random>

#include "base/error.h"
#include "base/text.h"
#include "checkpoint/digest.h"
#include "tests/checkpoint/sample.h"

namespace syntra {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class Damage : public testing::Test {
 protected:
  Damage() : root_(Scratch("damage")), newest_(root_ / StepName(20)) {
    Sample(10).Save(root_);
    Sample(20).Save(root_);
  }
  ~Damage() override { std::filesystem::remove_all(root_); }

  std::string ReasonFor(const Path& directory) const {
    try {
      Checkpoint checkpoint(directory);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kCheckpoint);
      return error.what();
    }
    return "no error";
  }

  // The newest must be rejected for a reason with `text`, first read-only, then set aside.
  void ExpectFallback(const std::string& text) {
    EXPECT_THAT(ReasonFor(newest_), HasSubstr(text));
    EXPECT_EQ(NewestStep(root_, Recovery::kReadOnly), 10) << text;
    EXPECT_TRUE(Exists(newest_)) << text;
    EXPECT_EQ(NewestStep(root_, Recovery::kSetAside), 10) << text;
    EXPECT_FALSE(Exists(newest_)) << text;
    EXPECT_TRUE(Exists(root_ / (".bad-" + StepName(20)))) << text;
  }

  void Restore() {
    std::filesystem::remove_all(root_);
    Sample(10).Save(root_);
    Sample(20).Save(root_);
  }

  Path root_, newest_;
};

TEST_F(Damage, ThousandRandomBitFlips) {
  std::vector<std::pair<Path, std::string>> files;
  std::vector<size_t> starts{0};
  for (const std::string& name : DirectoryNames(newest_)) {
    files.emplace_back(newest_ / name, ReadFile(newest_ / name));
    starts.push_back(starts.back() + files.back().second.size());
  }
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    const size_t position = random() % starts.back();
    size_t file = 0;
    while (starts[file + 1] <= position) ++file;
    auto& [path, content] = files[file];
    std::string damaged = content;
    damaged[position - starts[file]] ^= static_cast<char>(1 << random() % 8);
    OverwriteFile(path, damaged);
    ASSERT_EQ(NewestStep(root_), 10) << path << " byte " << position - starts[file];
    OverwriteFile(path, content);
  }
  EXPECT_EQ(NewestStep(root_), 20);
}

TEST_F(Damage, EveryByteOfTheManifest) {
  const Path path = newest_ / kManifestName;
  const std::string content = ReadFile(path);
  std::mt19937_64 random(2);
  for (size_t i = 0; i < content.size(); ++i) {
    std::string damaged = content;
    damaged[i] ^= static_cast<char>(1 + random() % 255);
    OverwriteFile(path, damaged);
    ASSERT_EQ(NewestStep(root_), 10) << "byte " << i;
    // Cut there: also every possible truncation.
    OverwriteFile(path, content.substr(0, i));
    ASSERT_EQ(NewestStep(root_), 10) << "cut at " << i;
  }
  OverwriteFile(path, content);
  EXPECT_EQ(NewestStep(root_), 20);
}

TEST_F(Damage, TruncatedEmptyMissingLongerAndLinkedFiles) {
  for (const std::string& name : DirectoryNames(newest_)) {
    const Path path = newest_ / name;
    const std::string content = ReadFile(path);
    const bool manifest = name == kManifestName;
    OverwriteFile(path, content.substr(0, content.size() - 1));
    ExpectFallback(name + (manifest ? " is damaged or truncated" : " is truncated: expected"));
    Restore();
    OverwriteFile(path, "");
    ExpectFallback(name + " is truncated");
    Restore();
    OverwriteFile(path, content + "x");
    ExpectFallback(name + (manifest ? " is damaged" : " is too long"));
    Restore();
    std::filesystem::remove(path);
    ExpectFallback(name + " is missing");
    Restore();
    std::filesystem::rename(path, root_ / "elsewhere");
    std::filesystem::create_symlink(root_ / "elsewhere", path);
    ExpectFallback(name + " is a symbolic link");
    Restore();
    std::filesystem::remove(path);
    std::filesystem::create_directory(path);
    ExpectFallback(name + " is not a regular file");
    Restore();
  }
}

TEST_F(Damage, FilesSwappedBetweenSteps) {
  for (const std::string& name : DirectoryNames(newest_)) {
    OverwriteFile(newest_ / name, ReadFile(root_ / StepName(10) / name));
    // The index is the same in every step.
    if (name == kIndexName) {
      EXPECT_EQ(NewestStep(root_), 20);
    } else {
      ExpectFallback(name == kManifestName ? "holds step 10, not step 20"
                                           : "damaged: expected XXH3-128");
    }
    Restore();
  }
}

TEST_F(Damage, WrongDirectory) {
  std::filesystem::rename(newest_, root_ / StepName(30));
  newest_ = root_ / StepName(30);
  EXPECT_THAT(ReasonFor(newest_), HasSubstr("holds step 20, not step 30"));
  EXPECT_EQ(NewestStep(root_), 10);

  std::filesystem::remove_all(newest_);
  std::filesystem::create_directory_symlink(root_ / StepName(10), newest_);
  EXPECT_THAT(ReasonFor(newest_), HasSubstr("is not a directory"));
  EXPECT_EQ(NewestStep(root_, Recovery::kSetAside), 10);
}

TEST_F(Damage, ExtraFile) {
  OverwriteFile(newest_ / "shard-00009.h5", "");
  ExpectFallback("shard-00009.h5 is an extra file");
}

TEST_F(Damage, BadOnesAreNeverDeletedOrOverwritten) {
  for (int i = 0; i < 3; ++i) {
    OverwriteFile(newest_ / "extra", std::to_string(i));
    EXPECT_EQ(NewestStep(root_, Recovery::kSetAside), 10);
    Sample(20).Save(root_);
  }
  EXPECT_EQ(ReadFile(root_ / ".bad-step-0000000020" / "extra"), "0");
  EXPECT_EQ(ReadFile(root_ / ".bad-step-0000000020-2" / "extra"), "1");
  EXPECT_EQ(ReadFile(root_ / ".bad-step-0000000020-3" / "extra"), "2");
}

TEST_F(Damage, AllBadIsAnErrorWithTheList) {
  OverwriteFile(newest_ / "extra", "");
  OverwriteFile(root_ / StepName(10) / "shard-00001.h5", "");
  for (int attempt = 0; attempt < 2; ++attempt) {
    try {
      FindNewestValid(root_, Recovery::kSetAside);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kCheckpoint);
      EXPECT_THAT(error.what(), AllOf(HasSubstr("no usable checkpoint"), HasSubstr("20/extra"),
                                      HasSubstr("10/shard-00001.h5 is truncated")));
    }
  }
  // Even when only renamed remains are left, nothing starts from scratch by itself.
  std::filesystem::remove_all(root_ / StepName(10));
  std::filesystem::rename(newest_, root_ / ".bad-step-0000000020");
  EXPECT_THROW(FindNewestValid(root_, Recovery::kSetAside), Error);
}

TEST_F(Damage, NothingThereIsNotAnError) {
  EXPECT_FALSE(FindNewestValid(root_ / "missing", Recovery::kSetAside));
  std::filesystem::remove_all(root_);
  CreateDirectories(root_);
  EXPECT_FALSE(FindNewestValid(root_, Recovery::kSetAside));
}

// A manifest with a right digest, as someone with bad intentions or another version would write it.
std::string Signed(const std::string& text) {
  return text + "xxh3-128 " + HexDigestOf(std::as_bytes(std::span(text.data(), text.size()))) +
         "\n";
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

TEST_F(Damage, HostileManifestsWithRightDigests) {
  const std::string signed_text = ReadFile(newest_ / kManifestName);
  const std::string text = signed_text.substr(0, signed_text.rfind("xxh3-128"));
  const std::string shard = "\"shard-00000.h5\"";
  for (const auto& [damaged, reason] : std::vector<std::pair<std::string, std::string>>{
           {Replaced(text, "syntra-checkpoint", "another-checkpoint"), "not a checkpoint manifest"},
           {Replaced(text, "{", "["), "broken JSON"},
           {"syntra-checkpoint 1\n" + std::string(100000, '['), "broken JSON"},
           {"syntra-checkpoint 1\n{}\n", "the top level is missing or not valid"},
           {Replaced(text, "\"step\": 20", "\"step\": -20"), "step is missing or not valid"},
           {Replaced(text, "\"step\": 20", "\"step\": 2e1"), "step is missing or not valid"},
           {Replaced(text, "\"step\"", "\"stop\""), "step of the top level"},
           {Replaced(text, shard, "\"../../secret\""), "refused file name \"../../secret\""},
           {Replaced(text, shard, "\"/etc/passwd\""), "refused file name"},
           {Replaced(text, shard, "\".hidden\""), "refused file name"},
           {Replaced(text, "\"f64\"", "\"f16\""), "dtype of"},
           {Replaced(text, "\"file\": " + shard, "\"file\": \"x.h5\""), "file of"},
           {Replaced(text, "    3,\n    1", "    3,\n    0"), "shape of"},
           {Replaced(text, "    3,\n    1", "    4294967296,\n    4294967296"), "shape of"},
           {Replaced(text, "    3,\n    1", "    3,\n    1000000"), "does not fit into"},
           {Replaced(text, "    3,\n    1", "    1,1,1,1,1,1,1"), "shape of"},
           {Replaced(text, "\"step\": {", "\"a//b\": {"), "cannot be stored"},
       }) {
    OverwriteFile(newest_ / kManifestName, Signed(damaged));
    EXPECT_THAT(ReasonFor(newest_), HasSubstr(reason));
    EXPECT_EQ(NewestStep(root_), 10) << reason;
  }
  // Consistent with itself but not with the HDF5 file.
  OverwriteFile(newest_ / kManifestName, Signed(Replaced(text, "    3,\n    1", "    1,\n    3")));
  Checkpoint checkpoint(newest_);
  std::byte row[24];
  EXPECT_THROW(checkpoint.Read("moments/row", row), Error);

  OverwriteFile(newest_ / kManifestName, Signed(Replaced(text, "moments/row", "moments/raw")));
  try {
    Checkpoint(newest_).Read("moments/raw", row);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("HDF5 H5Dopen2: "), HasSubstr("object 'raw' doesn't exist"),
                      HasSubstr("while reading tensor moments/raw from")));
  }
}

TEST_F(Damage, NewerFormatIsNeitherSkippedNorSetAside) {
  const std::string text = ReadFile(newest_ / kManifestName);
  OverwriteFile(newest_ / kManifestName,
                Signed(Replaced(text.substr(0, text.rfind("xxh3-128")), "syntra-checkpoint 1",
                                "syntra-checkpoint 2")));
  EXPECT_THROW(FindNewestValid(root_, Recovery::kSetAside), UnsupportedFormat);
  EXPECT_TRUE(Exists(newest_));
}

TEST_F(Damage, ChangeAfterVerificationIsFound) {
  Checkpoint checkpoint(newest_);
  // In place, so that the open file is the changed one.
  std::FILE* file = std::fopen((newest_ / "shard-00000.h5").c_str(), "r+");
  std::fseek(file, -5, SEEK_END);
  std::fputc('!', file);
  std::fclose(file);
  std::byte row[24];
  EXPECT_THROW(checkpoint.Read("moments/row", row), Error);
}

TEST_F(Damage, OldHdf5FormatsAreRefusedBeforeHdf5SeesThem) {
  const Path shard = newest_ / "shard-00000.h5";
  std::string content = ReadFile(shard);
  const std::string old_digest =
      HexDigestOf(std::as_bytes(std::span(content.data(), content.size())));
  content[8] = 0;
  const std::string new_digest =
      HexDigestOf(std::as_bytes(std::span(content.data(), content.size())));
  OverwriteFile(shard, content);
  const std::string text = ReadFile(newest_ / kManifestName);
  OverwriteFile(newest_ / kManifestName,
                Signed(Replaced(text.substr(0, text.rfind("xxh3-128")), old_digest, new_digest)));
  Checkpoint checkpoint(newest_);
  std::byte row[24];
  try {
    checkpoint.Read("moments/row", row);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("superblock version 2 or 3"));
  }
}

#if defined(__SANITIZE_ADDRESS__)
// HDF5 does not free everything when it gives up on a damaged file.
extern "C" const char* __lsan_default_suppressions() { return "leak:libhdf5"; }
#endif

TEST_F(Damage, HostileShardsWithRightDigestsDoNotCrash) {
  const Path shard = newest_ / "shard-00000.h5";
  const std::string content = ReadFile(shard);
  const std::string signed_text = ReadFile(newest_ / kManifestName);
  const std::string text = signed_text.substr(0, signed_text.rfind("xxh3-128"));
  const auto digest = [](const std::string& bytes) {
    return HexDigestOf(std::as_bytes(std::span(bytes.data(), bytes.size())));
  };
  std::mt19937_64 random(3);
  for (int i = 0; i < 500; ++i) {
    std::string damaged = content;
    for (int k = 0; k < 1 + i % 4; ++k)
      damaged[random() % content.size()] = static_cast<char>(random());
    OverwriteFile(shard, damaged);
    OverwriteFile(newest_ / kManifestName,
                  Signed(Replaced(text, digest(content), digest(damaged))));
    Checkpoint checkpoint(newest_);
    for (const auto& [name, entry] : checkpoint.tensors()) {
      std::vector<std::byte> bytes(entry.type.bytes());
      try {
        checkpoint.Read(name, bytes);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::kCheckpoint);
      }
    }
  }
}

}  // namespace
}  // namespace syntra
