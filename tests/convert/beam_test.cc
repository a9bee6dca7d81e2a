// SPDX-License-Identifier: Apache-2.0
// Beam search over imported models against what transformers found (tests/golden/make_beams.py).
#include "convert/beams.h"
#include "convert/formats.h"

namespace syntra {
namespace {

TEST(Beams, AreThoseOfT5sRuleOverTransformersLogits) {
  const Json fixture = ParseJson(ReadWholeFile(Golden("beams.json")));
  BeamCount total;
  for (const Json& answer : fixture.at("models")) {
    const std::string name = answer.at("asked").at("model");
    const testing::ScopedTrace trace(__FILE__, __LINE__, name);
    Running running(kHuggingFaceFormat.open(Golden(name), {}));
    const BeamCount count = ExpectSameBeams(answer, running);
    total.searches += count.searches;
    total.ranked_alike += count.ranked_alike;
    total.as_transformers += count.as_transformers;
  }
  EXPECT_EQ(total.searches, 960);
  // In the other 25 of 192 an output ends among the second half of the candidates, where
  // transformers does not look.
  EXPECT_EQ(total.ranked_alike, 192);
  EXPECT_EQ(total.as_transformers, 167);
}

}  // namespace
}  // namespace syntra
