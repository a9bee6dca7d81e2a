// SPDX-License-Identifier: Apache-2.0
#include "run/sample_log.h"

namespace syntra {
namespace {

std::string TextIn(const Json& line, const char* name) {
  const auto it = line.find(name);
  return it != line.end() && it->is_string() ? it->get<std::string>() : "";
}

}  // namespace

SampleLog::SampleLog(const Path& path, const ResumePoint& resumed)
    : lines_(path, [&resumed](std::string_view line) {
        const std::optional<int64_t> step = StepOf(line);
        return !step || *step < resumed.first_evaluation();
      }) {}

Json FieldsOf(const SampleLine& sample) {
  return {{"example", sample.example},
          {"input", sample.input},
          {"target", sample.target},
          {"output", sample.output}};
}

void SampleLog::Write(const SampleLine& sample) {
  lines_.file.Append(LineOf(sample.step, WallClock::now(), FieldsOf(sample)));
}

std::vector<SampleLine> ReadSampleLines(const Path& path) {
  std::vector<SampleLine> samples;
  if (!Exists(path)) return samples;
  VisitLines(path, [&](int64_t step, const Json& line) {
    const int64_t example = IntegerIn(line, "example", -1);
    if (example < 0) return;
    samples.push_back(
        {step, example, TextIn(line, "input"), TextIn(line, "target"), TextIn(line, "output")});
  });
  return samples;
}

}  // namespace syntra
