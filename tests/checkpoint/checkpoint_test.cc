// Saving, reading back, names, retention.
#include <gmock/gmock.h>

#include "base/error.h"
#include "checkpoint/digest.h"
#include "tests/checkpoint/sample.h"

namespace syntra {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string ErrorOf(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kCheckpoint) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

TEST(Checkpoint, RoundTripOverSeveralShards) {
  const Path root = Scratch("round-trip") / "deeper";
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
  const Path first = Scratch("equal-1"), second = Scratch("equal-2");
  Sample(5).Save(first);
  Sample(5).Save(second);
  for (const std::string& name : DirectoryNames(first / StepName(5))) {
    EXPECT_EQ(ReadFile(first / StepName(5) / name), ReadFile(second / StepName(5) / name)) << name;
  }
  std::filesystem::remove_all(first);
  std::filesystem::remove_all(second);
}

TEST(Checkpoint, LargeTensorAndEmptyState) {
  const Path root = Scratch("large");
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

TEST(Checkpoint, ErrorsSayWhatDoesNotFit) {
  const Path root = Scratch("errors");
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
      HasSubstr("is f32[16, 8] in checkpoint"));
  EXPECT_THAT(
      ErrorOf([&] { checkpoint.Read("moments/row", std::as_writable_bytes(std::span(data))); }),
      HasSubstr("24 bytes"));
  EXPECT_THAT(ErrorOf([&] { Checkpoint{root}; }), HasSubstr("not named like a checkpoint"));
  std::filesystem::remove_all(root);
}

TEST(Checkpoint, RefusesNamesThatCannotBeStored) {
  const Path root = Scratch("names");
  const float value = 1;
  const auto save = [&](std::vector<std::string> names) {
    std::vector<TensorRecord> records;
    for (const auto& name : names) {
      records.push_back({name, {DType::kF32, {}}, reinterpret_cast<const std::byte*>(&value)});
    }
    SaveCheckpoint(root, {.step = 1}, records);
  };
  for (const char* name : {"", "/a", "a/", "a//b", ".", "a/../b", "a\nb", "\xff"}) {
    EXPECT_THAT(ErrorOf([&] { save({name}); }), HasSubstr("cannot be stored")) << name;
  }
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
  const Path root = Scratch("replace");
  Sample(1).Save(root);
  SaveCheckpoint(root, {.step = 1, .run_id = "second"}, {});
  EXPECT_THAT(DirectoryNames(root), ElementsAre(StepName(1)));
  EXPECT_EQ(Checkpoint(root / StepName(1)).info().run_id, "second");
  std::filesystem::remove_all(root);
}

TEST(Retention, KeepsNewestMilestonesAndLaterSteps) {
  const Path root = Scratch("retention");
  const SaveOptions options{.keep = 2, .milestone_every = 20};
  for (const int64_t step : {0, 10, 20, 30, 40, 50}) Sample(step).Save(root, options);
  EXPECT_THAT(DirectoryNames(root), ElementsAre(StepName(20), StepName(40), StepName(50)));
  // Going back to an earlier step must not cost the checkpoint just saved.
  Sample(25).Save(root, options);
  EXPECT_THAT(DirectoryNames(root),
              ElementsAre(StepName(20), StepName(25), StepName(40), StepName(50)));
  std::filesystem::remove_all(root);
}

TEST(Retention, RemovesLeftoversOfDeadProcessesOnly) {
  const Path root = Scratch("leftovers");
  const std::string living = fmt::format(".tmp-step-0000000003-{}", getppid());
  // Process ids end at 2^22 on Linux.
  for (const std::string& name :
       {std::string(".tmp-step-0000000001-99999999"),
        std::string(".trash-step-0000000002-99999999"), std::string(".tmp-other-99999999"), living,
        std::string(".bad-step-0000000000"), std::string("notes-7")}) {
    CreateDirectories(root / name);
  }
  Sample(4).Save(root);
  EXPECT_THAT(DirectoryNames(root), ElementsAre(".bad-step-0000000000", ".tmp-other-99999999",
                                                living, "notes-7", StepName(4)));
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
