// SPDX-License-Identifier: Apache-2.0
#include "run/loss_spikes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/error.h"

namespace syntra {
namespace {

// Losses that scatter about 3 with a standard deviation of 0.1.
class LossSpikesTest : public testing::Test {
 protected:
  void Train(int steps) {
    for (int i = 0; i < steps; ++i) EXPECT_FALSE(spikes_.Add(Usual())) << i;
  }
  double Usual() { return 3 + 0.1 * normal_(random_); }

  std::mt19937 random_{1};
  std::normal_distribution<double> normal_;
  LossSpikes spikes_;
};

TEST_F(LossSpikesTest, WhatStandsOutIsMeasuredInDeviations) {
  Train(100);
  const auto spike = spikes_.Add(4);
  ASSERT_TRUE(spike);
  EXPECT_NEAR(spike->median, 3, 0.05);
  // Ten standard deviations; a hundred draws tell them to a fifth.
  EXPECT_NEAR(spike->deviations, 10, 2);
  EXPECT_FALSE(spikes_.Add(3.3));
  // Below the others nothing stands out.
  EXPECT_FALSE(spikes_.Add(0.5));
}

TEST_F(LossSpikesTest, ManySpikesDoNotHideTheNext) {
  Train(60);
  for (int i = 0; i < 40; ++i) EXPECT_TRUE(spikes_.Add(50)) << i;
  Train(10);
}

// A run that stays on another level has another usual loss.
TEST_F(LossSpikesTest, ANewLevelIsUsualInTheEnd) {
  Train(100);
  int found = 0;
  for (int i = 0; i < 100; ++i) found += spikes_.Add(Usual() + 3).has_value();
  EXPECT_GE(found, 40);
  EXPECT_LE(found, 60);
}

TEST_F(LossSpikesTest, TheFirstStepsSayNothing) {
  for (size_t i = 0; i < LossSpikes::kFewest; ++i) {
    EXPECT_FALSE(spikes_.Add(i % 2 == 0 ? 1 : 1000)) << i;
  }
}

// However even losses are, those within 6 % of the median are usual.
TEST_F(LossSpikesTest, EvenLosses) {
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(spikes_.Add(2));
  EXPECT_FALSE(spikes_.Add(2.11));
  EXPECT_TRUE(spikes_.Add(2.13));
}

TEST_F(LossSpikesTest, NotFiniteLossesAreNotLookedBackUpon) {
  Train(30);
  const std::string before = spikes_.ToText();
  for (const double loss : {NAN, INFINITY}) EXPECT_FALSE(spikes_.Add(loss));
  EXPECT_EQ(spikes_.ToText(), before);
}

// To the bit: what is restored finds the same spikes.
TEST_F(LossSpikesTest, TextRestores) {
  EXPECT_EQ(spikes_.ToText(), "");
  Train(130);
  LossSpikes restored;
  restored.Add(7);
  restored.Restore(spikes_.ToText());
  EXPECT_EQ(restored.ToText(), spikes_.ToText());
  const auto spike = spikes_.Add(4), same = restored.Add(4);
  ASSERT_TRUE(spike && same);
  EXPECT_EQ(same->deviations, spike->deviations);
  restored.Restore("");
  EXPECT_EQ(restored.ToText(), "");
}

TEST_F(LossSpikesTest, ForeignTextIsRefused) {
  Train(100);
  for (const std::string& text :
       {std::string(" "), std::string("1 x"), std::string("1 "), std::string("nan"),
        std::string("inf"), spikes_.ToText() + " 1"}) {
    EXPECT_THROW(LossSpikes().Restore(text), Error) << text;
  }
}

}  // namespace
}  // namespace syntra
