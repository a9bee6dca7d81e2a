// SPDX-License-Identifier: Apache-2.0
// Checkpoints: saving, reading, names, retention.
#include <gmock/gmock.h>
#include <sys/wait.h>

#include "base/digest.h"
#include "base/error.h"
#include "checkpoint/finite.h"
#include "checkpoint/retention.h"
#include "core/thread.h"
#include "tests/checkpoint/sample.h"

namespace syntra {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Checkpoint, RoundTripOverSeveralShards) {
  const Path root = ScratchInMemory("round-trip") / "deeper";
  const Sample sample(12300);
  sample.Save(root);
  EXPECT_THAT(DirectoryNames(root), ElementsAre("step-0000012300"));
  EXPECT_THAT(DirectoryNames(root / "step-0000012300"),
              ElementsAre("MANIFEST", "shard-00000.h5", "shard-00001.h5", "tensors.h5"));
  Checkpoint checkpoint(root / "step-0000012300/");
  EXPECT_TRUE(sample.Matches(checkpoint));
  EXPECT_EQ(*checkpoint.Find("moments/row"), (TensorType{DType::kF64, {3, 1}}));
  EXPECT_EQ(checkpoint.Find("moments"), nullptr);
  std::filesystem::remove_all(root.parent_path());
}

TEST(Checkpoint, EqualStatesGiveEqualBytes) {
  const Path first = ScratchInMemory("equal-1"), second = ScratchInMemory("equal-2");
  Sample(5).Save(first);
  Sample(5).Save(second);
  for (const std::string& name : DirectoryNames(first / StepName(5))) {
    EXPECT_EQ(ReadFile(first / StepName(5) / name), ReadFile(second / StepName(5) / name)) << name;
  }
  std::filesystem::remove_all(first);
  std::filesystem::remove_all(second);
}

TEST(Checkpoint, LargeTensorAndEmptyState) {
  const Path root = ScratchInMemory("large");
  std::vector<float> values(3'000'001);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const TensorRecord record{
      "x", {DType::kF32, {3'000'001}}, reinterpret_cast<const std::byte*>(values.data())};
  SaveCheckpoint(root, {.step = 0, .run_id = "r"}, {&record, 1});
  SaveCheckpoint(root, {.step = 1, .run_id = "r"}, {});
  std::vector<float> read(values.size());
  Checkpoint(root / StepName(0)).Read("x", TensorView{read.data(), record.type});
  EXPECT_EQ(read, values);
  EXPECT_TRUE(Checkpoint(root / StepName(1)).tensors().empty());
  std::filesystem::remove_all(root);
}

// Files of that size are written and read by several threads at once.
TEST(Checkpoint, LargeFilesSideBySide) {
  const Path parent = ScratchInMemory("side-by-side");
  Sample sample(3);
  for (const char* name : {"a", "b", "c"}) sample.Add(name, {DType::kF32, {5 << 20}});
  const SaveOptions options{.shard_bytes = 20 << 20};
  const int threads = ThreadCount();
  for (const int count : {1, 3}) {
    SetThreadCount(count);
    const Path root = parent / std::to_string(count);
    sample.Save(root, options);
    Checkpoint checkpoint(root / StepName(3));
    EXPECT_EQ(checkpoint.files().size(), 5u);
    EXPECT_TRUE(sample.Matches(checkpoint));
  }
  EXPECT_EQ(ReadFile(parent / "1" / StepName(3) / kManifestName),
            ReadFile(parent / "3" / StepName(3) / kManifestName));
  for (const char* name : {"shard-00001.h5", "shard-00002.h5"}) {
    File file = File::OpenOwnForWrite(parent / "3" / StepName(3) / name);
    file.WriteAt(10 << 20, std::as_bytes(std::span("damage")));
  }
  EXPECT_THAT(ErrorOf([&] { Checkpoint(parent / "3" / StepName(3)); }),
              AllOf(HasSubstr("shard-00001.h5 is damaged"), HasSubstr("\n  while verifying ")));
  SetThreadCount(threads);
  std::filesystem::remove_all(parent);
}

TEST(Checkpoint, TheManifestKnowsWhereTheBytesAre) {
  const Path root = ScratchInMemory("offsets");
  const Sample sample(7);
  sample.Save(root);
  const Checkpoint checkpoint(root / StepName(7));
  for (size_t i = 0; i < sample.names.size(); ++i) {
    const TensorEntry& entry = checkpoint.tensors().find(sample.names[i])->second;
    const std::string file = ReadFile(checkpoint.path() / entry.file);
    EXPECT_EQ(std::memcmp(file.data() + entry.offset, sample.bytes[i].data(), entry.type.bytes()),
              0)
        << sample.names[i];
  }
  std::filesystem::remove_all(root);
}

TEST(Checkpoint, FilesBesideTheTensors) {
  const Path root = ScratchInMemory("files");
  const FileRecord files[] = {{"tokenizer.model", std::string_view("a\0b", 3)}, {"empty", ""}};
  SaveCheckpoint(root, {.step = 1}, {}, {}, files);
  EXPECT_THAT(DirectoryNames(root / StepName(1)),
              ElementsAre("MANIFEST", "empty", "tensors.h5", "tokenizer.model"));
  Checkpoint checkpoint(root / StepName(1));
  EXPECT_EQ(checkpoint.ReadFile("tokenizer.model"), std::string("a\0b", 3));
  EXPECT_EQ(checkpoint.ReadFile("empty"), "");
  EXPECT_EQ(checkpoint.ReadFile("other"), std::nullopt);
  // Files that are held open do not mind what becomes of the directory.
  std::filesystem::remove_all(root);
  EXPECT_EQ(checkpoint.ReadFile("tokenizer.model"), std::string("a\0b", 3));
  const FileRecord outside{"../a", ""};
  EXPECT_THROW(SaveCheckpoint(root, {.step = 1}, {}, {}, {&outside, 1}), Error);
  std::filesystem::remove_all(root);
}

TEST(Checkpoint, ACopyMayHaveAnyName) {
  const Path root = ScratchInMemory("copy");
  const Sample sample(7);
  sample.Save(root);
  std::filesystem::copy(root / StepName(7), root / "best");
  Checkpoint copy(root / "best/");
  EXPECT_TRUE(sample.Matches(copy));
  std::filesystem::remove_all(root);
}

// Links inside of directories of checkpoints are another matter (damage_test.cc).
TEST(Checkpoint, ALinkThatAUserNamesIsFollowed) {
  const Path parent = ScratchInMemory("links"), root = parent / "checkpoints";
  const Sample sample(7);
  sample.Save(root);
  Sample(8).Save(root);
  const Path link = parent / "latest", behind = std::filesystem::canonical(root / StepName(7));
  std::filesystem::create_directory_symlink(root / StepName(7), link);
  for (const Path& path : {link, link / kManifestName}) {
    Checkpoint opened = OpenNewest(path);
    EXPECT_TRUE(sample.Matches(opened)) << path;
    EXPECT_EQ(opened.path(), behind) << path;
    EXPECT_THAT(CheckpointsAt(path), ElementsAre(behind));
  }
  EXPECT_THAT(ErrorOf([&] { OpenNewestIn(link); }), HasSubstr("is not a directory"));
  std::filesystem::create_directory_symlink(root / StepName(7), root / StepName(9));
  EXPECT_EQ(OpenNewest(root).info().step, 8);
  std::filesystem::remove_all(parent);
}

TEST(Checkpoint, TheStepIsThatOfTheNameHoweverItIsWritten) {
  const Path root = ScratchInMemory("names");
  Sample(7).Save(root);
  std::filesystem::rename(root / StepName(7), root / StepName(8));
  for (const char* end : {"", "/", "/.", "/./", "/../step-0000000008"}) {
    EXPECT_THAT(ErrorOf([&] { OpenNewest((root / StepName(8)).string() + end); }),
                HasSubstr("holds step 7, not step 8"))
        << end;
  }
  std::filesystem::remove_all(root);
}

TEST(Checkpoint, AFileInPlaceOfTheRoot) {
  const Path root = ScratchInMemory("root-file");
  OverwriteFile(root, "");
  EXPECT_THAT(ErrorOf([&] { FindNewestValid(root, Recovery::kReadOnly); }),
              HasSubstr("is not a directory of checkpoints"));
  std::filesystem::remove_all(root);
}

template <typename Value>
TensorRecord RecordOf(const char* name, DType dtype, const std::vector<Value>& values) {
  return {name,
          {dtype, {static_cast<int64_t>(values.size())}},
          reinterpret_cast<const std::byte*>(values.data())};
}

TEST(NotFinite, EveryTypeAndPlace) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> values(200'000, -std::numeric_limits<float>::max());
  EXPECT_EQ(NotFinite(std::vector{RecordOf("x", DType::kF32, values)}), "");
  values.front() = kInfinity;
  values[65'536] = std::numeric_limits<float>::signaling_NaN();
  values.back() = -kInfinity;
  const std::vector<double> doubles{std::numeric_limits<double>::max(),
                                    -std::numeric_limits<double>::quiet_NaN()};
  // The largest finite one, infinity, NaN, -infinity.
  const std::vector<uint16_t> halves{0x7f7f, 0x7f80, 0x7fc0, 0xff80};
  const std::vector<int32_t> integers{-1, 0x7f800000};
  const std::vector records{
      RecordOf("i", DType::kI32, integers), RecordOf("x", DType::kF32, values),
      RecordOf("y", DType::kF64, doubles),  RecordOf("z", DType::kBF16, halves),
      RecordOf("x2", DType::kF32, values),  RecordOf("x3", DType::kF32, values)};
  EXPECT_EQ(NotFinite(records),
            "x (3 of 200,000 values), y (1 of 2 values), z (3 of 4 values) and 2 other tensors");
}

TEST(Checkpoint, ErrorsSayWhatDoesNotFit) {
  const Path root = ScratchInMemory("errors");
  Sample(1).Save(root);
  Checkpoint checkpoint(root / StepName(1));
  std::vector<float> data(200);
  EXPECT_THAT(
      ErrorOf([&] {
        checkpoint.Read("parameters/embeding", TensorView{data.data(), {DType::kF32, {16, 8}}});
      }),
      HasSubstr("has no tensor \"parameters/embeding\"; did you mean \"parameters/embedding\"?"));
  EXPECT_THAT(
      ErrorOf([&] {
        checkpoint.Read("parameters/embedding", TensorView{data.data(), {DType::kF32, {8, 16}}});
      }),
      HasSubstr("is f32[16, 8] in "));
  EXPECT_THAT(
      ErrorOf([&] { checkpoint.Read("moments/row", std::as_writable_bytes(std::span(data))); }),
      HasSubstr("24 bytes"));
  EXPECT_THAT(ErrorOf([&] { Checkpoint{root}; }), HasSubstr("MANIFEST is missing"));
  std::filesystem::remove_all(root);
}

TEST(Checkpoint, RefusesNamesThatCannotBeStored) {
  const Path root = ScratchInMemory("names");
  const float value = 1;
  const auto save = [&](std::vector<std::string> names) {
    std::vector<TensorRecord> records;
    for (const auto& name : names) {
      records.push_back({name, {DType::kF32, {}}, reinterpret_cast<const std::byte*>(&value)});
    }
    SaveCheckpoint(root, {.step = 1}, records);
  };
  for (const char* name : {"", "/a", "a/", "a//b", ".", "a/../b", "a\nb", "\xff", "\xc2\x9b"}) {
    EXPECT_THAT(ErrorOf([&] { save({name}); }), HasSubstr("cannot be stored")) << name;
  }
  // A terminal must not obey a name.
  EXPECT_THAT(ErrorOf([&] { save({"a\x1b[31m"}); }), HasSubstr("\"a\\x1b[31m\" cannot be stored"));
  EXPECT_THAT(ErrorOf([&] { save({"a", "a/b"}); }), HasSubstr("is also the group of"));
  EXPECT_THROW(save({"a", "a"}), Error);
  EXPECT_THAT(ErrorOf([&] {
                SaveCheckpoint(root, {1, "r", {{"config", "\xff"}}}, {});
              }),
              HasSubstr("attribute config is not UTF-8"));
  EXPECT_TRUE(ListCheckpoints(root).empty());
  EXPECT_TRUE(!Exists(root) || DirectoryNames(root).empty());
  std::filesystem::remove_all(root);
}

TEST(Checkpoint, ReplacesTheSameStep) {
  const Path root = ScratchInMemory("replace");
  Sample(1).Save(root);
  SaveCheckpoint(root, {.step = 1, .run_id = "second"}, {});
  EXPECT_THAT(DirectoryNames(root), ElementsAre(StepName(1)));
  EXPECT_EQ(Checkpoint(root / StepName(1)).info().run_id, "second");
  std::filesystem::remove_all(root);
}

TEST(Retention, KeepsNewestMilestonesAndLaterSteps) {
  const Path root = ScratchInMemory("retention");
  const SaveOptions options{.keep = 2, .milestone_every = 20};
  for (const int64_t step : {0, 10, 20, 30, 40, 50}) Sample(step).Save(root, options);
  EXPECT_THAT(DirectoryNames(root), ElementsAre(StepName(20), StepName(40), StepName(50)));
  // Going back to an earlier step must not cost the checkpoint just saved.
  Sample(25).Save(root, options);
  EXPECT_THAT(DirectoryNames(root),
              ElementsAre(StepName(20), StepName(25), StepName(40), StepName(50)));
  std::filesystem::remove_all(root);
}

// Requests to save or stop do not cost a scheduled one.
TEST(Retention, OneIsKeptBesideTheScheduledOnes) {
  const Path root = ScratchInMemory("retention-schedule");
  const SaveOptions options{.keep = 2, .schedule = [](int64_t step) { return step % 10 == 0; }};
  const auto save = [&](int64_t step) {
    Sample(step).Save(root, options);
    std::vector<int64_t> steps;
    for (const CheckpointRef& each : ListCheckpoints(root)) steps.push_back(each.step);
    return steps;
  };
  for (const int64_t step : {0, 10, 15, 20}) save(step);
  EXPECT_THAT(save(23), ElementsAre(10, 20, 23));
  EXPECT_THAT(save(24), ElementsAre(10, 20, 24));
  EXPECT_THAT(save(25), ElementsAre(10, 20, 25));
  EXPECT_THAT(save(30), ElementsAre(20, 25, 30));
  EXPECT_THAT(save(40), ElementsAre(25, 30, 40));
  std::filesystem::remove_all(root);
}

TEST(GoingBack, ToTheNewestFromBeforeOrTheOldest) {
  const Path root = ScratchInMemory("going-back");
  for (const int64_t step : {10, 20, 30}) Sample(step).Save(root, {.keep = 3});
  // The checkpoint of step 20 holds what step 20 made of the parameters.
  for (const auto& [first_bad, to] :
       std::map<int64_t, int64_t>{{40, 30}, {21, 20}, {20, 10}, {5, 10}}) {
    EXPECT_EQ(StepToGoBackTo(root, first_bad), to) << first_bad;
  }
  std::filesystem::remove(root / StepName(10) / "tensors.h5");
  EXPECT_EQ(StepToGoBackTo(root, 21), 20);
  EXPECT_EQ(StepToGoBackTo(root, 15), 20);
  // The damaged one that was passed over is kept where nothing removes it.
  const std::string aside = ".bad-" + StepName(10);
  EXPECT_THAT(DirectoryNames(root), ElementsAre(aside, StepName(20), StepName(30)));
  for (const int64_t step : {20, 30}) {
    std::filesystem::remove(root / StepName(step) / "tensors.h5");
  }
  EXPECT_THROW(StepToGoBackTo(root, 25), Error);
  EXPECT_THAT(DirectoryNames(root), ElementsAre(aside, StepName(20), StepName(30)));
  std::filesystem::remove_all(root);
}

TEST(GoingBack, ToAScheduledOneIfThereIsAny) {
  const Path root = ScratchInMemory("going-back-schedule");
  const SaveSchedule schedule = [](int64_t step) { return step % 10 == 0; };
  for (const int64_t step : {8, 10, 15, 20, 25}) Sample(step).Save(root, {.keep = 5});
  for (const auto& [first_bad, to] : std::map<int64_t, int64_t>{{30, 20}, {20, 10}, {9, 10}}) {
    EXPECT_EQ(StepToGoBackTo(root, first_bad, schedule), to) << first_bad;
  }
  for (const int64_t step : {10, 20}) std::filesystem::remove(root / StepName(step) / "tensors.h5");
  EXPECT_EQ(StepToGoBackTo(root, 20, schedule), 15);
  std::filesystem::remove_all(root);
}

TEST(GoingBack, LaterCheckpointsGo) {
  const Path root = ScratchInMemory("later");
  for (const int64_t step : {10, 20, 30}) Sample(step).Save(root, {.keep = 3});
  RemoveCheckpointsAfter(root, 30);
  EXPECT_EQ(DirectoryNames(root).size(), 3u);
  RemoveCheckpointsAfter(root, 10);
  EXPECT_THAT(DirectoryNames(root), ElementsAre(StepName(10)));
  std::filesystem::remove_all(root);
}

TEST(Retention, RemovesLeftoversOfDeadProcessesOnly) {
  const Path root = ScratchInMemory("leftovers");
  const std::string living = fmt::format(".tmp-step-0000000003-{}", getppid());
  const pid_t ended = fork();  // and not yet waited for
  if (ended == 0) _exit(0);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, ended, &info, WEXITED | WNOWAIT), 0);
  // Process ids end at 2^22 on Linux.
  for (const std::string& name :
       {std::string(".tmp-step-0000000001-99999999"),
        std::string(".trash-step-0000000002-99999999"), std::string(".tmp-other-99999999"), living,
        fmt::format(".tmp-step-0000000005-{}", ended), std::string(".bad-step-0000000000"),
        std::string("notes-7")}) {
    CreateDirectories(root / name);
  }
  Sample(4).Save(root);
  EXPECT_THAT(DirectoryNames(root), ElementsAre(".bad-step-0000000000", ".tmp-other-99999999",
                                                living, "notes-7", StepName(4)));
  waitpid(ended, nullptr, 0);
  std::filesystem::remove_all(root);
}

TEST(Layout, StepNames) {
  EXPECT_EQ(StepName(12300), "step-0000012300");
  EXPECT_EQ(ParseStepName(StepName(123456789012)), 123456789012);
  for (const char* name :
       {"step-12300", "step--000000001", "step-00000000010", "step-000000001x", "step-"}) {
    EXPECT_FALSE(ParseStepName(name)) << name;
  }
}

TEST(Digest, MatchesThePublishedValueForNothing) {
  EXPECT_EQ(HexDigestOf({}), "99aa06d3014798d86001c324468d497f");
}

}  // namespace
}  // namespace syntra
