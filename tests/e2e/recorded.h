// SPDX-License-Identifier: Apache-2.0
// Tiny runs, and what they record of themselves.
#pragma once

#include "base/text.h"
#include "tests/e2e/tiny_run.h"

namespace syntra {

class Recorded : public TinyRun {
 protected:
  std::vector<Json> Lines(const std::string& name, const char* file) const {
    std::vector<Json> lines;
    for (const std::string& line : Split(ReadWholeFile(Directory(name) / file), '\n')) {
      if (!line.empty()) lines.push_back(ParseJson(line));
    }
    return lines;
  }
  std::vector<Json> Events(const std::string& name) const { return Lines(name, "events.jsonl"); }
  std::string SamplesWithoutTimes(const std::string& name) const {
    std::string text;
    for (Json line : Lines(name, "samples.jsonl")) {
      line.erase("time");
      text += line.dump() + "\n";
    }
    return text;
  }
  std::vector<std::string> EventNames(const std::string& name) const {
    std::vector<std::string> names;
    for (const Json& event : Events(name)) names.push_back(event.at("event"));
    return names;
  }
  Json Report(const std::string& name) const {
    const Outcome outcome = Run({"report", "--json", Directory(name).string()});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return ParseJson(outcome.out).at("runs").at(0);
  }
  void RemoveCheckpoint(const std::string& name, int64_t step) const {
    std::filesystem::remove_all(CheckpointPath(name, step));
  }
};

inline const Arguments kShort{"train.steps=6", "checkpoint.every=3", "evaluation.every=3"};
// The same, and samples at each evaluation.
inline const Arguments kSampled{"train.steps=6", "checkpoint.every=3", "evaluation.every=3",
                                "evaluation.samples=2"};

}  // namespace syntra
