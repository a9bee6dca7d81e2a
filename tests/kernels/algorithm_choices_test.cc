// SPDX-License-Identifier: Apache-2.0
#include "kernels/algorithm_choices.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>
#include <thread>

#include "base/scratch.h"
#include "kernels/bfloat16.h"

namespace syntra {
namespace {

const std::vector<std::string> kThree{"tile 1", "tile 2", "tile 3"};

// What a process chooses whose clock shows these seconds.
size_t ChooseBy(AlgorithmChoices& choices, std::vector<double> seconds,
                const std::string& problem = "4 x 4") {
  return choices.Choose(problem, kThree, [&] { return seconds; });
}

// What it chooses if it need not look at the clock.
size_t Remembered(AlgorithmChoices& choices, const std::string& problem = "4 x 4") {
  return choices.Choose(problem, kThree, [] {
    ADD_FAILURE() << "measured again";
    return std::vector<double>();
  });
}

TEST(AlgorithmChoices, TheFastestIsTakenAndRemembered) {
  const Path file = ScratchDirectory("fastest") / "made" / "algorithms.json";
  AlgorithmChoices choices(file);
  EXPECT_EQ(ChooseBy(choices, {3, 1, 2}), 1u);
  EXPECT_EQ(ChooseBy(choices, {3, 2, 1}, "8 x 8"), 2u);
  EXPECT_EQ(Remembered(choices), 1u);
  AlgorithmChoices later(file);
  EXPECT_EQ(Remembered(later), 1u);
  EXPECT_EQ(Remembered(later, "8 x 8"), 2u);
}

TEST(AlgorithmChoices, NoiseDoesNotDecide) {
  AlgorithmChoices choices(ScratchDirectory("noise") / "algorithms.json");
  EXPECT_EQ(ChooseBy(choices, {1, 0.99, 0.985}), 0u);
  EXPECT_EQ(ChooseBy(choices, {1, 0.9, 0.89}, "8 x 8"), 1u);
}

// In the run alone, whose numbers must not change: others may have the memory to measure.
TEST(AlgorithmChoices, WhatCannotBeMeasuredIsTheFirst) {
  const Path directory = ScratchDirectory("unmeasured");
  const Path user = directory / "user.json", run = directory / "run.json";
  AlgorithmChoices choices(user);
  choices.KeepIn(run);
  EXPECT_EQ(ChooseBy(choices, {}), 0u);
  EXPECT_EQ(Remembered(choices), 0u);
  AlgorithmChoices other_run(user);
  EXPECT_EQ(ChooseBy(other_run, {3, 1, 2}), 1u);
  AlgorithmChoices later(user);
  later.KeepIn(run);
  EXPECT_EQ(Remembered(later), 0u);
}

TEST(AlgorithmChoices, NothingIsChosenThatNoFileRemembers) {
  AlgorithmChoices without_files;
  EXPECT_EQ(Remembered(without_files), 0u);
  const Path directory = ScratchDirectory("unwritable");
  ReplaceFileDurably(directory / "file", "");
  CreateDirectories(directory / "folder" / "algorithms.json");
  AlgorithmChoices unwritable(directory / "file" / "algorithms.json");
  EXPECT_EQ(Remembered(unwritable), 0u);
  unwritable.KeepIn(directory / "folder" / "algorithms.json");
  EXPECT_EQ(Remembered(unwritable), 0u);
  unwritable.KeepIn(directory / "run.json");
  EXPECT_EQ(ChooseBy(unwritable, {3, 1, 2}), 1u);
}

TEST(AlgorithmChoices, WhatIsNoLongerWrittenIsNotChosen) {
  const Path directory = ScratchDirectory("vanishing");
  AlgorithmChoices choices(directory / "algorithms.json");
  EXPECT_EQ(ChooseBy(choices, {3, 2, 1}), 2u);
  RemoveAll(directory);
  EXPECT_EQ(Remembered(choices, "8 x 8"), 0u);
  EXPECT_EQ(Remembered(choices), 2u);
}

TEST(AlgorithmChoices, ProcessesThatChooseAtOnceChooseAlike) {
  const Path file = ScratchDirectory("at_once") / "algorithms.json";
  std::vector<std::vector<size_t>> chosen(4);
  std::vector<std::thread> processes;
  for (size_t i = 0; i < chosen.size(); ++i) {
    processes.emplace_back([&, i] {
      AlgorithmChoices choices(file);
      std::vector<double> seconds{1, 1, 1};
      seconds[i % 3] = 0.5;
      for (int problem = 0; problem < 20; ++problem) {
        chosen[i].push_back(ChooseBy(choices, seconds, std::to_string(problem)));
      }
    });
  }
  for (std::thread& process : processes) process.join();
  for (const std::vector<size_t>& one : chosen) EXPECT_EQ(one, chosen[0]);
}

TEST(MeasuringValues, AreSmallAndVaried) {
  constexpr size_t kCount = 4099;
  const std::vector<BFloat16> values = MeasuringValues(kCount);
  ASSERT_EQ(values.size(), kCount);
  double sum = 0;
  std::set<uint16_t> different;
  for (size_t i = 0; i < kCount; ++i) {
    const float value = ToFloat(values[i]);
    EXPECT_LE(std::abs(value), 0.125f);
    sum += value;
    different.insert(values[i].bits);
    const uint32_t above = i + 1 < kCount ? uint32_t{values[i + 1].bits} << 16 : 0;
    EXPECT_LT(std::abs(std::bit_cast<float>(above | values[i].bits)), 0.126f);  // as f32
  }
  EXPECT_NEAR(sum / kCount, 0.0, 0.005);  // deviates by 0.0011
  EXPECT_GT(different.size(), 1000u);
}

TEST(AlgorithmChoices, DamagedFilesAreMadeAnew) {
  const Path file = ScratchDirectory("damaged") / "algorithms.json";
  for (const char* text : {"", "{\"4 x 4\": \"tile", "[1, 2]", "{\"4 x 4\": 3}", "\xff\xfe"}) {
    ReplaceFileDurably(file, text);
    AlgorithmChoices choices(file);
    EXPECT_EQ(ChooseBy(choices, {3, 1, 2}), 1u) << text;
    AlgorithmChoices later(file);
    EXPECT_EQ(Remembered(later), 1u) << text;
  }
}

TEST(AlgorithmChoices, AnAlgorithmThatIsNotOfferedCountsAsTheFirst) {
  const Path file = ScratchDirectory("unknown") / "algorithms.json";
  ReplaceFileDurably(file, R"({"4 x 4": "tile 9"})");
  AlgorithmChoices choices(file);
  EXPECT_EQ(Remembered(choices), 0u);
}

TEST(AlgorithmChoices, ARunsFileOutranksTheUsers) {
  const Path directory = ScratchDirectory("two_files");
  const Path user = directory / "user.json", run = directory / "run.json";
  AlgorithmChoices first(user);
  EXPECT_EQ(ChooseBy(first, {3, 2, 1}), 2u);
  AlgorithmChoices other(run);
  EXPECT_EQ(ChooseBy(other, {2, 1, 3}), 1u);

  AlgorithmChoices choices(user);
  EXPECT_EQ(Remembered(choices), 2u);
  EXPECT_EQ(ChooseBy(choices, {1, 2, 3}, "8 x 8"), 0u);
  choices.KeepIn(run);
  EXPECT_EQ(Remembered(choices), 1u);
  EXPECT_EQ(ChooseBy(choices, {2, 3, 1}, "16 x 16"), 2u);
  choices.KeepIn(directory / "next_run.json");
  EXPECT_EQ(Remembered(choices), 2u);

  // The run goes on elsewhere; and the user's other runs remain as they were.
  AlgorithmChoices continued(directory / "other_machine.json");
  continued.KeepIn(run);
  EXPECT_EQ(Remembered(continued), 1u);
  EXPECT_EQ(Remembered(continued, "8 x 8"), 0u);
  EXPECT_EQ(Remembered(continued, "16 x 16"), 2u);
  AlgorithmChoices other_run(user);
  EXPECT_EQ(Remembered(other_run), 2u);
}

TEST(AlgorithmChoices, TheUsersFileIsInTheCache) {
  using Variables = std::map<std::string, const char*>;
  const auto file = [](const Variables& variables) {
    return UserAlgorithmsFile([&](const char* name) {
      const auto found = variables.find(name);
      return found == variables.end() ? nullptr : found->second;
    });
  };
  EXPECT_EQ(file({{"XDG_CACHE_HOME", "/c"}, {"HOME", "/h"}}), "/c/syntra/algorithms.json");
  EXPECT_EQ(file({{"HOME", "/h"}}), "/h/.cache/syntra/algorithms.json");
  EXPECT_EQ(file({{"XDG_CACHE_HOME", "relative"}, {"HOME", "/h"}}),
            "/h/.cache/syntra/algorithms.json");
  EXPECT_EQ(file({{"HOME", ""}}), "");
}

}  // namespace
}  // namespace syntra
