// SPDX-License-Identifier: Apache-2.0
// Beam search of this program held to what tests/interop/run_beams.py found with transformers.
#pragma once

#include <gtest/gtest.h>

#include "convert/running_model.h"
#include "decode/strategy.h"

namespace syntra {

// Every input of `asked` through a beam of `setting`.
inline std::vector<Hypotheses> BeamsOf(Running& running, const Json& asked, const Json& setting) {
  DecodingConfig config;
  config.mutable_beam()->set_size(setting.at("size"));
  config.mutable_beam()->set_alpha(setting.at("alpha"));
  config.mutable_beam()->set_early_stopping(setting.at("early_stopping"));
  config.set_outputs(setting.at("outputs"));
  const auto strategy = MakeStrategy(config);
  const Json& inputs = asked.at("inputs");
  size_t longest = 0;
  for (const Json& input : inputs) longest = std::max(longest, input.size());
  std::vector<int32_t> ids(inputs.size() * longest), segments(ids.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::ranges::copy(inputs[i], ids.begin() + static_cast<int64_t>(i * longest));
    std::fill_n(segments.begin() + static_cast<int64_t>(i * longest), inputs[i].size(), 1);
  }
  const auto count = static_cast<int64_t>(inputs.size());
  DecodeSession session(
      running.Trained(),
      {count, strategy->rows_per_input(), static_cast<int64_t>(longest), asked.at("longest")},
      strategy->next_tokens());
  session.Start(ids, segments);
  const int32_t end_id = asked.at("end_id");
  return strategy->Decode(session,
                          {.inputs = count,
                           .ends = [end_id](auto, auto, int32_t id) { return id == end_id; },
                           .digests = {}});
}

struct BeamCount {
  int searches = 0;
  int ranked_alike = 0;     // without a length penalty
  int as_transformers = 0;  // of these: the best output is that of transformers, too
};

// Expects the outputs and scores of T5's rule, which the script takes from the logits and the
// search of transformers; and never a best output that transformers betters.
inline BeamCount ExpectSameBeams(const Json& answer, Running& running) {
  const Json& asked = answer.at("asked");
  const size_t inputs = asked.at("inputs").size(), settings = asked.at("settings").size();
  EXPECT_EQ(answer.at("answers").size(), inputs * settings);
  BeamCount count;
  for (size_t s = 0; s < settings; ++s) {
    const Json& setting = asked.at("settings")[s];
    const std::vector<Hypotheses> beams = BeamsOf(running, asked, setting);
    for (size_t i = 0; i < inputs; ++i) {
      const testing::ScopedTrace trace(__FILE__, __LINE__,
                                       fmt::format("input {}, {}", i, setting.dump()));
      const Json& expected = answer.at("answers")[i * settings + s];
      ++count.searches;
      EXPECT_EQ(beams[i].size(), expected.at("t5").size());
      for (size_t k = 0; k < std::min(beams[i].size(), expected.at("t5").size()); ++k) {
        EXPECT_EQ(Json(beams[i][k].ids), expected.at("t5")[k][0]);
        EXPECT_NEAR(beams[i][k].log_probability, expected.at("t5")[k][1], 1e-4);
        EXPECT_NEAR(beams[i][k].score, expected.at("t5")[k][2], 1e-4);
      }
      if (!expected.contains("transformers")) continue;
      ++count.ranked_alike;
      const double score = expected.at("transformers")[1];
      EXPECT_GE(beams[i].front().score, score - 1e-4);
      if (Json(beams[i].front().ids) != expected.at("transformers")[0]) continue;
      ++count.as_transformers;
      EXPECT_NEAR(beams[i].front().score, score, 1e-4);
    }
  }
  return count;
}

}  // namespace syntra
