// SPDX-License-Identifier: Apache-2.0
// The small files of a run directory: STATUS, run.json and LOCK.
#include "base/lock_holder.h"
#include "base/text.h"
#include "fuzz/target.h"
#include "run/run_status.h"
#include "train/run_directory.h"

namespace syntra {
namespace {

void Run(std::string_view input) {
  const Path directory = InputDirectory() / "run";
  CreateDirectories(directory);
  InputFile(input, "run/run.json");
  SYNTRA_CHECK(!RunIdOf({.root = directory}).empty());
  InputFile(input, "run/STATUS");
  RunStatus status(directory);
  const bool done = status.IsDone(7);
  const std::string holder = DescribeHolder(std::string(input)).value_or("");
  SYNTRA_CHECK(Printable(holder) == holder, "{}", Printable(holder));
  status.Start(7);  // refuses what has started too often
  SYNTRA_CHECK(!status.IsDone(7));
  status.Stop(7, done ? Ending::kDone : Ending::kStopped);
  SYNTRA_CHECK(status.IsDone(7) == done);
}

std::vector<std::string> Seeds() {
  return {R"({"state":"done","step":7,"starts_without_progress":0,"updated_unix_time":1700000000})",
          R"({"state":"running","step":7,"starts_without_progress":2})",
          R"({"host":"node7","pid":12,"start":"2026-01-31 12:00:00","job":"34"})",
          R"({"run_id":"0123456789abcdef","version":"0.1.0","ranks":2})"};
}

}  // namespace

const Target fuzz_run_files = {.name = "run_files",
                               .refusals = {ExitCode::kDiverged},
                               .run = Run,
                               .seeds = Seeds,
                               .tokens = {"\"step\":7", "\"starts_without_progress\":3",
                                          "\"state\":\"done\"", "\"run_id\":", "\"pid\":", "1e300",
                                          "-1", "9223372036854775807", "\\u001b", "null", "[", "{"},
                               .mutations = 1000};

}  // namespace syntra
