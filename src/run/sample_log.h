// SPDX-License-Identifier: Apache-2.0
// samples.jsonl: what the model made of some validation examples (evaluation.samples), the same at
// each evaluation: one JSON object a sample.
//
//   {"step":100,"time":"...","example":12,"input":"A <extra_id_0> day","target":"<extra_id_0> rainy
//   <extra_id_1>","output":"<extra_id_0> good <extra_id_1>"}
//
// A language model goes on with the input, the first half of a text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "run/json_lines.h"

namespace syntra {

struct SampleLine {
  int64_t step = 0, example = 0;
  std::string input, target, output;
};

// The fields after the step and the time.
Json FieldsOf(const SampleLine& sample);

class SampleLog {
 public:
  // Appends to `path`, but first removes the evaluations that will be made again. As with
  // MetricsLog, a file that cannot be written never stops training.
  SampleLog(const Path& path, const ResumePoint& resumed);

  void Write(const SampleLine& sample);
  // Makes what was written survive a crash.
  void Sync() const { lines_.file.Sync(); }

 private:
  LineAppender lines_;
};

// In the order of the file; none if there is no such file.
std::vector<SampleLine> ReadSampleLines(const Path& path);

}  // namespace syntra
