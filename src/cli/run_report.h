// SPDX-License-Identifier: Apache-2.0
// The contents of a run's directory, for `report` and `watch`.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "configs/schema/config.pb.h"
#include "run/goodput.h"
#include "run/sample_log.h"

namespace syntra {

struct RunReport {
  Path directory;
  std::string name;  // short; tells the runs of one report apart
  Config config;
  RunHistory history;
  std::vector<RunEvent> events;
  std::vector<SampleLine> samples;
  std::optional<Goodput> goodput;  // nothing where the run's time is not known
  bool done = false;
};

// Their names are the last parts of the directories. Throws Error(kConfig) if no run has begun in
// one of them.
std::vector<RunReport> ReadRunReports(const std::vector<std::string>& directories);
// `report.config` of a run. Throws Error(kConfig) if the directory is not that of a run.
Config ConfigOfRun(const Path& directory);

// "2.0k tokens/s, MFU 25.0%; 30s in 6 steps".
std::string DescribeThroughput(const RunHistory& history);
// "10.3820 at step 0, 5.7410 at step 400".
std::string DescribeCurve(const Curve& curve);

using NamedTexts = std::vector<std::pair<std::string, std::string>>;
// The log-perplexity on the validation split, and the metrics of tasks.
NamedTexts DescribeEvaluations(const RunHistory& history);
// "  name  value" for each field whose value is not empty, with the values under one another. A
// name of more than `longest_name` characters loses its beginning, since a task's metrics differ at
// the end.
std::vector<std::string> FieldLines(const NamedTexts& fields,
                                    int longest_name = std::numeric_limits<int>::max());
// The least of its finite values; the first point if there is none. `curve` is not empty.
PlotPoint LowestOf(const Curve& curve);

// The samples of the last evaluation that has some.
std::span<const SampleLine> LastSamples(const RunReport& report);

Json ReportJson(const RunReport& report);

}  // namespace syntra
