// SPDX-License-Identifier: Apache-2.0
#include "cli/mixer_list.h"

#include <gtest/gtest.h>

#include <set>

#include "config/config.h"
#include "configs/schema/kind_of.h"
#include "tests/base/kinds.h"

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
  EXPECT_EQ(kinds, KindNames<MixerConfig>());
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

}  // namespace
}  // namespace syntra
