// SPDX-License-Identifier: Apache-2.0
// What the cases of the contract test cover.
#include <gtest/gtest.h>

#include <set>

#include "mixers/mixer_trial.h"

namespace syntra {
namespace {

// What the contract leaves out is known: a trait that is lost by mistake changes these numbers.
TEST(MixerCases, ClaimAllButThis) {
  int not_causal = 0, not_incremental = 0, prefills = 0, bidirectional = 0, leak = 0, exact = 0,
      stochastic = 0;
  for (const MixerCase& mixer : MixerCases()) {
    const MixerTraits traits = MakeMixer(ConfigOf(mixer))->traits();
    not_causal += !traits.causal;
    not_incremental += !traits.not_incremental.empty();
    prefills += traits.prefills;
    bidirectional += traits.bidirectional_prefix;
    leak += traits.packed_rows == PackedRows::kLeaks;
    exact += traits.packed_rows == PackedRows::kExact;
    stochastic += traits.stochastic;
  }
  EXPECT_EQ(not_causal, 9);       // fourier, linformer, mlp, big_bird
  EXPECT_EQ(prefills, 62);        // those whose steps read what is there of each position
  EXPECT_EQ(bidirectional, 44);   // attention
  EXPECT_EQ(not_incremental, 6);  // tables by position in the segment
  EXPECT_EQ(
      leak,
      22);  // the first three, gated_mlp, sinkhorn, and those without a softmax over positions
  EXPECT_EQ(exact, 23);      // local attention, attention without tables, and convolutions
  EXPECT_EQ(stochastic, 3);  // convolutions with weight_dropout, sinkhorn with gumbel_noise
}

// A new kind of mixer, term or gate must come with a case.
TEST(MixerCases, CoverEveryKindTermAndGate) {
  std::set<int> kinds, terms, gates, indices;
  for (const MixerCase& mixer : MixerCases()) {
    const MixerConfig config = ConfigOf(mixer);
    kinds.insert(config.kind_case());
    for (const ScoreTerm& term : config.attention().term()) terms.insert(term.kind_case());
    gates.insert(config.attention().gate());
    indices.insert(config.attention().index_by());
  }
  EXPECT_EQ(kinds.size(), MixerConfig::descriptor()->FindOneofByName("kind")->field_count());
  EXPECT_EQ(terms.size(), ScoreTerm::descriptor()->FindOneofByName("kind")->field_count());
  EXPECT_EQ(gates.size(), AttentionConfig::Gate_descriptor()->value_count());
  EXPECT_EQ(indices.size(), AttentionConfig::TableIndex_descriptor()->value_count());
}

}  // namespace
}  // namespace syntra
