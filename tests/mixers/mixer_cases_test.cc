// SPDX-License-Identifier: Apache-2.0
// What the cases of the contract test cover, and that no mixer claims less than it can do: the
// contract is asked only of what is claimed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "configs/schema/kind_of.h"
#include "mixers/mixer_cases.h"
#include "mixers/mixer_trial.h"
#include "tests/base/kinds.h"

namespace syntra {
namespace {

std::string Trimmed(const std::string& text) {
  return std::regex_replace(text, std::regex("^ +| +$"), "");
}

// Whether all configurations of a kind can do something, none, or some.
std::string AnswerOf(const std::vector<bool>& answers) {
  const auto yes = std::ranges::count(answers, true);
  return yes == std::ssize(answers) ? "yes" : yes == 0 ? "no" : "some";
}

// The table of the page: for each kind of mixer the cells of its row.
std::map<std::string, std::vector<std::string>> TableOfThePage() {
  const std::string page = ReadWholeFile(Path(SYNTRA_SOURCE_DIR) / "src/mixers/README.md");
  const size_t begin = page.find("| mixer | in a decoder |");
  SYNTRA_CHECK(begin != std::string::npos, "the page has no table of mixers");
  std::map<std::string, std::vector<std::string>> table;
  for (const std::string& line :
       Split(page.substr(begin, page.find("\n\n", begin) - begin), '\n')) {
    const std::vector<std::string> cells = Split(line, '|');
    SYNTRA_CHECK(cells.size() == 6, "{}", line);
    for (const std::string& name : Split(cells[1], ',')) {
      const std::string kind = Trimmed(name);
      if (!kind.starts_with('`')) continue;  // the head
      for (int i : {2, 3, 4}) {
        const std::string cell = Trimmed(cells[i]);
        table[kind.substr(1, kind.size() - 2)].push_back(cell == "yes" || cell == "no" ? cell
                                                                                       : "some");
      }
    }
  }
  return table;
}

TEST(MixerCases, CanDoWhatThePageSays) {
  struct Answers {
    std::vector<bool> decodes, packs, sees_order;
  };
  std::map<std::string, Answers> found;
  for (const MixerCase& mixer : MixerCases()) {
    const MixerTraits traits = MakeMixer(ConfigOf(mixer))->traits();
    Answers& answers = found[MixerKind(ConfigOf(mixer))];
    answers.decodes.push_back(traits.causal);
    answers.packs.push_back(traits.packed_rows != PackedRows::kLeaks);
    answers.sees_order.push_back(traits.sees_order);
  }
  std::map<std::string, std::vector<std::string>> table;
  for (const auto& [kind, answers] : found) {
    table[kind] = {AnswerOf(answers.decodes), AnswerOf(answers.packs),
                   AnswerOf(answers.sees_order)};
  }
  EXPECT_EQ(table, TableOfThePage()) << "the table of src/mixers/README.md";
}

// Only tables by position in the segment need a whole row.
TEST(MixerCases, DecodeStepByStepUnlessTheyReadPositions) {
  for (const MixerCase& mixer : MixerCases()) {
    const MixerTraits traits = MakeMixer(ConfigOf(mixer))->traits();
    EXPECT_EQ(traits.not_incremental.empty(), !traits.reads_positions) << mixer.name;
  }
}

// States that hold a row for each position can be written for a whole input; sums cannot.
TEST(MixerCases, TakeInputsAtOnceIfTheirStepsReadRows) {
  for (const MixerCase& mixer : MixerCases()) {
    const MixerTraits traits = MakeMixer(ConfigOf(mixer))->traits();
    if (!traits.causal || !traits.not_incremental.empty()) continue;
    EXPECT_EQ(traits.prefills, StatesOfSteps(ConfigOf(mixer)) == std::set{StateKind::kPositions})
        << mixer.name;
  }
}

// Two inputs that change places then change the outputs at other positions.
TEST(MixerCases, SeeOrderIfTheySaySo) {
  constexpr int64_t kLength = 7;
  for (const MixerCase& mixer : MixerCases()) {
    if (!MakeMixer(ConfigOf(mixer))->traits().sees_order) continue;
    MixerSetting setting{.config = ConfigOf(mixer), .batch = 1, .length = kLength};
    setting.x = RandomRows(1, kLength);
    const std::vector<double> y = OutputOf(setting);
    std::swap_ranges(setting.x.begin() + 2 * kTrialWidth, setting.x.begin() + 3 * kTrialWidth,
                     setting.x.begin() + 4 * kTrialWidth);
    const std::vector<double> swapped = OutputOf(setting);
    double largest = 0;
    for (int64_t i = 0; i < kLength * kTrialWidth; ++i) {
      const int64_t row = i / kTrialWidth;
      if (row != 2 && row != 4) largest = std::max(largest, std::abs(swapped[i] - y[i]));
    }
    EXPECT_GT(largest, 1e-6) << mixer.name;
  }
}

// It is what the refusal of a mixer that cannot advises.
TEST(MixerCases, OfAttentionReadPrefixesInBothDirections) {
  for (const MixerCase& mixer : MixerCases()) {
    if (MixerKind(ConfigOf(mixer)) != "attention") continue;
    EXPECT_TRUE(MakeMixer(ConfigOf(mixer))->traits().bidirectional_prefix) << mixer.name;
  }
}

// A new kind of mixer, term or gate must come with a case.
TEST(MixerCases, CoverEveryKindTermAndGate) {
  std::set<std::string> kinds, terms;
  std::set<int> gates, indices;
  for (const MixerCase& mixer : MixerCases()) {
    const MixerConfig config = ConfigOf(mixer);
    kinds.insert(KindOf(config));
    for (const ScoreTerm& term : config.attention().term()) terms.insert(KindOf(term));
    gates.insert(config.attention().gate());
    indices.insert(config.attention().index_by());
  }
  EXPECT_EQ(kinds, KindNames<MixerConfig>());
  EXPECT_EQ(terms, KindNames<ScoreTerm>());
  EXPECT_EQ(gates.size(), AttentionConfig::Gate_descriptor()->value_count());
  EXPECT_EQ(indices.size(), AttentionConfig::TableIndex_descriptor()->value_count());
}

}  // namespace
}  // namespace syntra
