#include "train/metrics_log.h"

#include <sys/resource.h>

#include <cmath>

#include "base/json.h"
#include "base/text.h"
#include "tests/train/child.h"

namespace syntra {
namespace {

StepMetrics At(int64_t step) {
  return {.step = step,
          .loss = 2.5,
          .grad_norm = 0.1,
          .learning_rate = 1e-5,
          .tokens_per_second = 40960,
          .seconds = 0.25};
}

TEST(MetricsLog, FixedOrderThenExtras) {
  const Path path = ScratchDirectory("metrics") / "metrics.jsonl";
  MetricsLog log(path, 0);
  StepMetrics metrics = At(1);
  metrics.extras = {{"data \"wait\"", 0.5}, {"skipped", NAN}};
  log.Write(metrics);
  log.Write(1, {{"validation_loss", 3}});
  EXPECT_EQ(ReadWholeFile(path),
            "{\"step\":1,\"loss\":2.5,\"grad_norm\":0.1,\"learning_rate\":1e-05,"
            "\"tokens_per_second\":40960,\"seconds\":0.25,\"data \\\"wait\\\"\":0.5,"
            "\"skipped\":null}\n{\"step\":1,\"validation_loss\":3}\n");
}

TEST(MetricsLog, ValuesSurviveARoundTrip) {
  const Path path = ScratchDirectory("metrics-round-trip") / "metrics.jsonl";
  MetricsLog log(path, 0);
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
    MetricsLog log(path, 0);
    for (int64_t step = 1; step <= 12; ++step) log.Write(At(step));
  }
  const std::string whole = ReadWholeFile(path);
  const size_t ten = whole.find("{\"step\":11,");
  // The last line cut at every byte.
  for (size_t length = ten; length <= whole.size(); ++length) {
    ReplaceFileDurably(path, whole.substr(0, length));
    MetricsLog log(path, 10);
    ASSERT_EQ(ReadWholeFile(path), whole.substr(0, ten)) << length;
    log.Write(At(11));
    log.Write(At(12));
    ASSERT_EQ(ReadWholeFile(path), whole);
  }
  MetricsLog(path, 0);
  EXPECT_EQ(ReadWholeFile(path), "");
}

// A run that continues where an evaluation was due makes it again.
TEST(MetricsLog, ResumeDropsTheEvaluationOfThatStep) {
  const Path path = ScratchDirectory("metrics-evaluation") / "metrics.jsonl";
  for (int round = 0; round < 2; ++round) {
    MetricsLog log(path, 2);
    if (round == 0) log.Write(1, {{"validation_log_perplexity", 4}});
    if (round == 0) log.Write(At(2));
    log.Write(2, {{"validation_log_perplexity", 3}});
  }
  const std::vector<std::string> lines = Split(ReadWholeFile(path), '\n');
  ASSERT_EQ(lines.size(), 4u);  // the last is empty
  EXPECT_EQ(lines[0], "{\"step\":1,\"validation_log_perplexity\":4}");
  EXPECT_EQ(lines[2], "{\"step\":2,\"validation_log_perplexity\":3}");
}

TEST(MetricsLog, KeepsLinesItDoesNotKnow) {
  const Path path = ScratchDirectory("metrics-foreign") / "metrics.jsonl";
  ReplaceFileDurably(path, "# note\n{\"step\":1,\"loss\":2}\n\n{\"step\":2}\n{\"step\":3}\n");
  MetricsLog(path, 2);
  EXPECT_EQ(ReadWholeFile(path), "# note\n{\"step\":1,\"loss\":2}\n\n{\"step\":2}\n");
}

TEST(MetricsLog, FullDiskDoesNotThrow) {
  MetricsLog log("/dev/full", 0);
  log.Write(At(1));
  log.Write(At(2));
  MetricsLog missing("/nonexistent/metrics.jsonl", 0);
  missing.Write(At(1));
}

TEST(MetricsLog, PartOfALineIsTakenBack) {
  const Path path = ScratchDirectory("metrics-limit") / "metrics.jsonl";
  // A file size limit acts like a disk that fills up in the middle of a line.
  Child child([&](const auto&) {
    signal(SIGXFSZ, SIG_IGN);
    MetricsLog log(path, 0);
    log.Write(At(1));
    const int64_t size = std::filesystem::file_size(path);
    const rlimit limit = {static_cast<rlim_t>(size + 10), RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &limit);
    log.Write(At(2));
    const rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &none);
    log.Write(At(3));
    return 0;
  });
  EXPECT_EQ(child.Wait(), 0);
  const std::vector<std::string> lines = Split(ReadWholeFile(path), '\n');
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(ParseJson(lines[0]).at("step"), 1);
  EXPECT_EQ(ParseJson(lines[1]).at("step"), 3);
}

}  // namespace
}  // namespace syntra
