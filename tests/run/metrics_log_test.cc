// SPDX-License-Identifier: Apache-2.0
#include "run/metrics_log.h"

#include <sys/resource.h>
#include <sys/syscall.h>

#include <cmath>
#include <thread>

#include "base/json.h"
#include "base/text.h"
#include "tests/base/captured_log.h"
#include "tests/base/refused_calls.h"
#include "tests/base/scratch.h"
#include "tests/run/child.h"
#include "tests/run/fixed_time.h"

namespace syntra {
namespace {

const NamedValues kValues = {{"loss", 2.5}, {"learning_rate", 1e-5}, {"seconds", 0.25}};

TEST(MetricsLog, StepTimeAndValuesInTheirOrder) {
  const Path path = ScratchDirectory("metrics") / "metrics.jsonl";
  MetricsLog log(path, {0}, FixedTime);
  NamedValues values = kValues;
  values.insert(values.end(), {{"data \"wait\"", 0.5}, {"skipped", NAN}});
  log.Write(1, values);
  log.Write(1, {{"validation_loss", 3}});
  const std::string time = "\"time\":\"2023-11-14T22:13:20.045Z\",";
  EXPECT_EQ(ReadWholeFile(path), "{\"step\":1," + time +
                                     "\"loss\":2.5,\"learning_rate\":1e-05,\"seconds\":0.25,"
                                     "\"data \\\"wait\\\"\":0.5,\"skipped\":null}\n{\"step\":1," +
                                     time + "\"validation_loss\":3}\n");
}

TEST(MetricsLog, TimeIsTheSystems) {
  const Path path = ScratchDirectory("metrics-time") / "metrics.jsonl";
  MetricsLog(path, {0}).Write(1, kValues);
  const std::string time = ParseJson(ReadWholeFile(path)).at("time");
  EXPECT_GT(time, "2026-01-01T00:00:00.000Z");
  EXPECT_EQ(time.size(), 24u);
}

TEST(MetricsLog, ValuesSurviveARoundTrip) {
  const Path path = ScratchDirectory("metrics-round-trip") / "metrics.jsonl";
  MetricsLog log(path, {0});
  const std::vector<double> values = {0.1, 1e300, 5e-324, -0.0, 1.0 / 3, 123456789012345678.0};
  for (const double value : values) log.Write(1, {{"x", value}});
  const std::vector<std::string> lines = Split(ReadWholeFile(path), '\n');
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(ParseJson(lines[i]).at("x").get<double>(), values[i]);
  }
}

TEST(MetricsLog, ResumeDropsLaterStepsAndABrokenEnd) {
  const Path path = ScratchDirectory("metrics-resume") / "metrics.jsonl";
  {
    MetricsLog log(path, {0}, FixedTime);
    for (int64_t step = 1; step <= 12; ++step) log.Write(step, kValues);
  }
  const std::string whole = ReadWholeFile(path);
  const size_t ten = whole.find("{\"step\":11,");
  // The last line cut at every byte.
  for (size_t length = ten; length <= whole.size(); ++length) {
    ReplaceFileDurably(path, whole.substr(0, length));
    MetricsLog log(path, {10}, FixedTime);
    ASSERT_EQ(ReadWholeFile(path), whole.substr(0, ten)) << length;
    log.Write(11, kValues);
    log.Write(12, kValues);
    ASSERT_EQ(ReadWholeFile(path), whole);
  }
  MetricsLog(path, {0});
  EXPECT_EQ(ReadWholeFile(path), "");
}

// Lines behind one that seems to be of a later step stay.
TEST(MetricsLog, ADamagedStepCostsItsOwnLine) {
  const Path path = ScratchDirectory("metrics-damaged") / "metrics.jsonl";
  {
    MetricsLog log(path, {0}, FixedTime);
    for (int64_t step = 1; step <= 12; ++step) log.Write(step, kValues);
  }
  const std::vector<std::string> lines = Split(ReadWholeFile(path), '\n');
  std::string damaged, kept;
  for (int i = 0; i < 12; ++i) {
    const bool is_damaged = i == 3;
    damaged += (is_damaged ? "{\"step\":9" + lines[i].substr(8) : lines[i]) + "\n";
    if (!is_damaged && i < 10) kept += lines[i] + "\n";
  }
  ReplaceFileDurably(path, damaged + "{\"step\":1");
  MetricsLog log(path, {10}, FixedTime);
  EXPECT_EQ(ReadWholeFile(path), kept);
  log.Write(11, kValues);
  EXPECT_EQ(ReadWholeFile(path), kept + lines[10] + "\n");
}

// A run that continues where an evaluation was due makes it again.
TEST(MetricsLog, ResumeDropsTheEvaluationOfThatStep) {
  const Path path = ScratchDirectory("metrics-evaluation") / "metrics.jsonl";
  for (int round = 0; round < 2; ++round) {
    MetricsLog log(path, {2}, FixedTime);
    EXPECT_EQ(log.repeats_evaluation(2), round == 1);
    EXPECT_FALSE(log.repeats_evaluation(1));
    if (round == 0) log.Write(1, {{"validation_log_perplexity", 4}});
    if (round == 0) log.Write(2, kValues);
    log.Write(2, {{"validation_log_perplexity", 3}});
  }
  const std::vector<std::string> lines = Split(ReadWholeFile(path), '\n');
  ASSERT_EQ(lines.size(), 4u);  // the last is empty
  EXPECT_EQ(lines[0], R"({"step":1,"time":"2023-11-14T22:13:20.045Z",)"
                      "\"validation_log_perplexity\":4}");
  EXPECT_EQ(lines[2], R"({"step":2,"time":"2023-11-14T22:13:20.045Z",)"
                      "\"validation_log_perplexity\":3}");
}

// That of a last step which is no longer the last is not made again.
TEST(MetricsLog, AnEvaluationThatIsNotMadeAgainStays) {
  const Path path = ScratchDirectory("metrics-extended") / "metrics.jsonl";
  MetricsLog(path, {0}).Write(2, {{"cola/matthews", 0.5}});
  const std::string text = ReadWholeFile(path);
  EXPECT_FALSE(MetricsLog(path, {.step = 2, .evaluates = false}).repeats_evaluation(2));
  EXPECT_EQ(ReadWholeFile(path), text);
}

// The evaluation of tasks, too.
TEST(MetricsLog, ResumeDropsTheTasksOfThatStep) {
  const Path path = ScratchDirectory("metrics-tasks") / "metrics.jsonl";
  MetricsLog(path, {0}).Write(2, {{"cola/matthews", 0.5}});
  EXPECT_EQ(MetricsLog(path, {2}).lost().steps, 0);
  EXPECT_EQ(ReadWholeFile(path), "");
}

// Evaluations that are made again are no lost steps.
TEST(MetricsLog, TellsWhatWasLost) {
  const Path path = ScratchDirectory("metrics-lost") / "metrics.jsonl";
  {
    MetricsLog log(path, {0}, FixedTime);
    EXPECT_TRUE(std::isnan(log.last_time()));
    for (int64_t step = 1; step <= 4; ++step) log.Write(step, kValues);
    log.Write(4, {{"validation_log_perplexity", 3}});
  }
  const MetricsLog log(path, {2}, FixedTime);
  EXPECT_EQ(log.lost().steps, 2);
  EXPECT_EQ(log.lost().seconds, 0.5);
  EXPECT_EQ(log.last_time(), 1700000000.045);
  EXPECT_EQ(MetricsLog(path, {2}, FixedTime).lost().steps, 0);
}

TEST(MetricsLog, KeepsLinesItDoesNotKnow) {
  const Path path = ScratchDirectory("metrics-foreign") / "metrics.jsonl";
  ReplaceFileDurably(path, "# note\n{\"step\":1,\"loss\":2}\n\n{\"step\":2}\n{\"step\":3}\n");
  MetricsLog(path, {2});
  EXPECT_EQ(ReadWholeFile(path), "# note\n{\"step\":1,\"loss\":2}\n\n{\"step\":2}\n");
}

TEST(MetricsLog, FullDiskWarnsOnce) {
  const CapturedLog captured;
  MetricsLog log("/dev/full", {0});
  log.Write(1, kValues);
  log.Write(2, kValues);
  // What may be in it cannot be read, and nothing can be appended.
  EXPECT_EQ(captured.Warnings().size(), 2u);
  MetricsLog missing("/nonexistent/metrics.jsonl", {0});
  missing.Write(1, kValues);
  ASSERT_EQ(captured.Warnings().size(), 3u);
  EXPECT_NE(captured.Warnings().back().find("/nonexistent/metrics.jsonl"), std::string::npos);
}

TEST(MetricsLog, AFileThatIsRemovedIsBegunAgain) {
  const Path path = ScratchDirectory("metrics-removed") / "metrics.jsonl";
  MetricsLog log(path, {0}, FixedTime);
  log.Write(1, kValues);
  const std::string line = ReadWholeFile(path);
  const CapturedLog captured;
  RemoveAll(path);
  log.Write(1, kValues);
  EXPECT_EQ(ReadWholeFile(path), line);
  // As an editor saves it.
  ReplaceFileDurably(path, "mine\n");
  log.Write(1, kValues);
  log.Write(1, kValues);
  EXPECT_EQ(ReadWholeFile(path), "mine\n" + line + line);
  const std::string start = path.string() + " was removed or replaced while the run writes it; ";
  EXPECT_EQ(captured.Warnings(),
            (std::vector<std::string>{start + "later records go to a new file",
                                      start + "later records go to the file that is there now"}));
}

TEST(MetricsLog, AFileThatCannotBeOpenedAtFirstIsWrittenLater) {
  const CapturedLog captured;
  const Path directory = ScratchDirectory("metrics-late") / "later", path = directory / "m.jsonl";
  MetricsLog log(path, {0});
  log.Write(1, kValues);
  EXPECT_EQ(captured.Warnings().size(), 1u);
  CreateDirectories(directory);
  log.Write(2, kValues);
  EXPECT_EQ(ParseJson(ReadWholeFile(path)).at("step"), 2);
}

TEST(MetricsLog, PartOfALineIsTakenBack) {
  // At once, or where the file cannot be cut then, before the next line.
  for (const bool at_once : {true, false}) {
    const Path path = ScratchDirectory("metrics-limit") / "metrics.jsonl";
    // A file size limit acts like a disk that fills up in the middle of a line.
    Child child([&](const auto&) {
      signal(SIGXFSZ, SIG_IGN);
      MetricsLog log(path, {0});
      log.Write(1, kValues);
      const auto size = static_cast<rlim_t>(std::filesystem::file_size(path));
      const rlimit limit = {size + 10, RLIM_INFINITY};
      setrlimit(RLIMIT_FSIZE, &limit);
      bool refused = true;
      std::thread([&] {
        if (!at_once) refused = RefuseCalls({SYS_ftruncate});
        log.Write(2, kValues);
      }).join();
      if (!refused) return 1;
      if (std::filesystem::file_size(path) != size + (at_once ? 0 : 10)) return 2;
      const rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
      setrlimit(RLIMIT_FSIZE, &none);
      log.Write(3, kValues);
      return 0;
    });
    EXPECT_EQ(child.Wait(), 0) << at_once;
    const std::vector<std::string> lines = Split(ReadWholeFile(path), '\n');
    ASSERT_EQ(lines.size(), 3u) << at_once;
    EXPECT_EQ(ParseJson(lines[0]).at("step"), 1);
    EXPECT_EQ(ParseJson(lines[1]).at("step"), 3);
  }
}

}  // namespace
}  // namespace syntra
