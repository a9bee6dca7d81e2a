// SPDX-License-Identifier: Apache-2.0
// Every kind of damage to a checkpoint is found and named, and the previous checkpoint is used.
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include <random>

#include "base/error.h"
#include "tests/base/error_of.h"
#include "tests/checkpoint/forged.h"
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
  Damage() : root_(ScratchInMemory("damage")), newest_(root_ / StepName(20)) {
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
    const std::string error =
        ErrorOf([&] { FindNewestValid(root_, Recovery::kSetAside); }, ExitCode::kCheckpoint);
    EXPECT_THAT(error, AllOf(HasSubstr("no usable checkpoint"), HasSubstr("20/extra"),
                             HasSubstr("10/shard-00001.h5 is truncated")));
  }
  // Even when only renamed remains are left, nothing starts from scratch by itself.
  std::filesystem::remove_all(root_ / StepName(10));
  std::filesystem::rename(newest_, root_ / ".bad-step-0000000020");
  EXPECT_THROW(FindNewestValid(root_, Recovery::kSetAside), Error);
}

// It may be good: a command must not use an older model without a word.
TEST_F(Damage, WhatCannotBeReadIsAnErrorForReaders) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = dup(STDIN_FILENO);
  ASSERT_GE(next, 0);
  close(next);
  rlimit two_more = before;
  two_more.rlim_cur = next + 2;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &two_more), 0);
  const std::string error =
      ErrorOf([&] { FindNewestValid(root_, Recovery::kReadOnly); }, ExitCode::kResources);
  const std::string of_run =
      ErrorOf([&] { FindNewestValid(root_, Recovery::kSetAside); }, ExitCode::kResources);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_THAT(of_run, AllOf(HasSubstr("no checkpoint in " + root_.string() + " can be read"),
                            HasSubstr(StepName(20)), HasSubstr(StepName(10)),
                            HasSubstr("Too many open files; allow the process more")));
  EXPECT_THAT(error, AllOf(HasSubstr("Too many open files"),
                           HasSubstr("or name an older checkpoint than " + StepName(20))));
  EXPECT_EQ(NewestStep(root_, Recovery::kReadOnly), 20);
}

TEST_F(Damage, NothingThereIsNotAnError) {
  EXPECT_FALSE(FindNewestValid(root_ / "missing", Recovery::kSetAside));
  std::filesystem::remove_all(root_);
  CreateDirectories(root_);
  EXPECT_FALSE(FindNewestValid(root_, Recovery::kSetAside));
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

TEST_F(Damage, HostileManifestsWithRightDigests) {
  const std::string text = Unsigned(ReadFile(newest_ / kManifestName));
  const std::string shard = "\"shard-00000.h5\"";
  for (const auto& [damaged, reason] : std::vector<std::pair<std::string, std::string>>{
           {Replaced(text, "syntra-checkpoint", "another-checkpoint"), "not a checkpoint manifest"},
           {Replaced(text, "{", "["), "broken JSON"},
           {"syntra-checkpoint 2\n" + std::string(100000, '['), "broken JSON"},
           {"syntra-checkpoint 2\n{}\n", "the top level is missing or not valid"},
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
           {Replaced(text, "\"offset\": ", "\"offset\": 1000000000000"), "offset of"},
           {Replaced(text, "\"offset\": ", "\"offset\": -"), "is missing or not valid"},
           {Replaced(text, "\"offset\": ", "\"onset\": "), "offset of"},
           {Replaced(text, "\"dtype\"", "\"\\u001b[31m\""), "is missing or not valid"},
           {Replaced(text, "\"step\": {", "\"\\u001b[31m\": {"), "\\x1b[31m"},
       }) {
    OverwriteFile(newest_ / kManifestName, Signed(damaged));
    EXPECT_THAT(ReasonFor(newest_), HasSubstr(reason));
    EXPECT_EQ(NewestStep(root_), 10) << reason;
  }
}

TEST_F(Damage, ATensorEndsWithinItsFile) {
  Manifest manifest = ParseManifest(ReadFile(newest_ / kManifestName));
  TensorEntry& entry = manifest.tensors.begin()->second;
  const auto bytes = static_cast<int64_t>(entry.type.bytes());
  entry.offset = manifest.files.at(entry.file).bytes - bytes;
  OverwriteFile(newest_ / kManifestName, ToText(manifest));
  EXPECT_EQ(ReasonFor(newest_), "no error");
  ++entry.offset;
  OverwriteFile(newest_ / kManifestName, ToText(manifest));
  EXPECT_THAT(ReasonFor(newest_), HasSubstr("offset of"));
}

TEST_F(Damage, NewerFormatIsNeitherSkippedNorSetAside) {
  const std::string text = ReadFile(newest_ / kManifestName);
  OverwriteFile(newest_ / kManifestName,
                Signed(Replaced(Unsigned(text), "syntra-checkpoint 2", "syntra-checkpoint 3")));
  EXPECT_THROW(FindNewestValid(root_, Recovery::kSetAside), UnsupportedFormat);
  EXPECT_THROW(StepToGoBackTo(root_, 1000), UnsupportedFormat);
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
  const TensorDestination all[] = {{"moments/row", {row, {DType::kF64, {3, 1}}}}};
  EXPECT_THROW(checkpoint.Read(all), Error);
}

}  // namespace
}  // namespace syntra
