// SPDX-License-Identifier: Apache-2.0
#include "run/prometheus_file.h"

#include <cmath>

#include "tests/base/captured_log.h"
#include "tests/base/scratch.h"

namespace syntra {
namespace {

TEST(PrometheusFile, GaugesAndCounters) {
  PrometheusFile file("unused", {{"run", "a \"b\"\\c\nd"}, {"run_id", "01"}});
  file.Set({{"loss", 2.5}, {"learning_rate", 1e-5}, {"cola/matthews", NAN}});
  file.Set("loss", INFINITY);
  file.Count("save");
  file.Count("save", 2);
  const std::string labels = R"(run="a \"b\"\\c\nd",run_id="01")";
  EXPECT_EQ(file.Text(),
            "# HELP syntra_learning_rate The latest learning_rate of the run.\n"
            "# TYPE syntra_learning_rate gauge\n"
            "syntra_learning_rate{" +
                labels +
                "} 1e-05\n"
                "# HELP syntra_loss The latest loss of the run.\n"
                "# TYPE syntra_loss gauge\n"
                "syntra_loss{" +
                labels +
                "} +Inf\n"
                "# HELP syntra_matthews The latest matthews of the run.\n"
                "# TYPE syntra_matthews gauge\n"
                "syntra_matthews{" +
                labels +
                ",task=\"cola\"} NaN\n"
                "# HELP syntra_events_total What happened to the run so far.\n"
                "# TYPE syntra_events_total counter\n"
                "syntra_events_total{" +
                labels + ",event=\"save\"} 3\n");
}

// A metric stands once, whatever its tasks are called.
TEST(PrometheusFile, TasksAreLabels) {
  PrometheusFile file("unused", {{"run", "a"}});
  file.Set({{"my-task/f1", 1}, {"my_task/f1", 2}, {"情感/f1", 3}});
  EXPECT_EQ(file.Text(),
            "# HELP syntra_f1 The latest f1 of the run.\n"
            "# TYPE syntra_f1 gauge\n"
            "syntra_f1{run=\"a\",task=\"my-task\"} 1\n"
            "syntra_f1{run=\"a\",task=\"my_task\"} 2\n"
            "syntra_f1{run=\"a\",task=\"情感\"} 3\n");
}

TEST(PrometheusFile, IsWrittenAsOftenAsItIsRead) {
  const Path path = ScratchDirectory("prometheus") / "metrics.prom";
  double now = 100;
  PrometheusFile file(path, {}, [&] { return now; });
  const auto step = [&](double value) {
    file.Set("step", value);
    file.WriteIfDue();
    const std::string text = ReadWholeFile(path);
    return text.substr(text.rfind(' ') + 1);
  };
  EXPECT_EQ(step(1), "1\n");
  now += PrometheusFile::kSeconds / 2;
  EXPECT_EQ(step(2), "1\n");
  now += PrometheusFile::kSeconds / 2;
  EXPECT_EQ(step(3), "3\n");
  file.Set("step", 4);
  file.Write();
  EXPECT_EQ(step(5), "4\n");
}

TEST(PrometheusFile, ADirectoryThatIsGoneStopsNothing) {
  const CapturedLog captured;
  PrometheusFile file("/nonexistent/metrics.prom", {});
  file.Write();
  file.Write();
  EXPECT_EQ(captured.Warnings().size(), 1u);
}

}  // namespace
}  // namespace syntra
