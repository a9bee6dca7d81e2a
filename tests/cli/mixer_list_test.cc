// SPDX-License-Identifier: Apache-2.0
#include "cli/mixer_list.h"

#include <gtest/gtest.h>

#include <set>

#include "base/file.h"
#include "config/config.h"
#include "configs/schema/kind_of.h"
#include "tests/base/error_of.h"
#include "tests/base/kinds.h"
#include "tests/base/scratch.h"

namespace syntra {
namespace {

const std::string kConfigs = SYNTRA_SOURCE_DIR "/configs/";

// Each shipped line makes a configuration, and every kind of mixer is among them.
TEST(MixerList, TheQuickStartsHasEveryKindOfMixer) {
  std::set<std::string> kinds;
  for (const ListedMixer& mixer : ReadMixerList(kConfigs + "mixers/quickstart.txt")) {
    const Config config =
        LoadConfig(std::vector{kConfigs + "quickstart.textproto"}, mixer.overrides, kForModel);
    kinds.insert(KindOf(config.model().mixer()));
  }
  EXPECT_EQ(kinds, KindNames<MixerConfig>()) << "configs/mixers/quickstart.txt, and the schema";
}

// They are models of their own, whose rows fit the tables.
TEST(MixerList, TheEncodersFitTheTasksOfEncoders) {
  for (const std::string task : {"ag_news", "imdb"}) {
    std::set<std::string> texts;
    for (const ListedMixer& mixer : ReadMixerList(kConfigs + "mixers/encoders.txt")) {
      const Config config = LoadConfig(std::vector{kConfigs + "finetune/" + task + ".textproto"},
                                       mixer.overrides, kForFinetuning);
      EXPECT_TRUE(texts.insert(config.model().DebugString()).second) << mixer.name;
    }
    EXPECT_GE(texts.size(), 10u);
  }
}

std::vector<ListedMixer> Listed(const std::string& text) {
  const Path file = ScratchDirectory("list") / "mixers.txt";
  ReplaceFileDurably(file, text);
  return ReadMixerList(file);
}

TEST(MixerList, AByteOrderMarkIsNoPartOfTheFirstLine) {
  const std::vector<ListedMixer> mixers = Listed("\xEF\xBB\xBF# a comment\r\nplain\r\n");
  ASSERT_EQ(mixers.size(), 1u);
  EXPECT_EQ(mixers[0].name, "plain");
}

// A line may have several messages.
TEST(MixerList, OnlyTheModelAndItsOptimizerMayDiffer) {
  const std::string own = "a model { width: 64 } optimizer { beta1: 0.8 }";
  EXPECT_EQ(Listed(own).size(), 1u);
  for (const std::string other : {"train { steps: 9 }", "data { task: [] }", "evaluation {}"}) {
    const std::string error = ErrorOf([&] { Listed(own + " " + other + "\n"); }, ExitCode::kConfig);
    EXPECT_NE(error.find(":1: a mixer may not change \"model { width: 64 }"), error.npos) << error;
  }
}

}  // namespace
}  // namespace syntra
