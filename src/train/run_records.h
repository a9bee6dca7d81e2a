// SPDX-License-Identifier: Apache-2.0
// The files in which rank 0 records what happens to a run: metrics.jsonl, events.jsonl,
// samples.jsonl, TensorBoard's events and metrics.prom.
#pragma once

#include <optional>
#include <string>

#include "configs/schema/config.pb.h"
#include "run/event_file.h"
#include "run/event_log.h"
#include "run/metrics_log.h"
#include "run/prometheus_file.h"
#include "run/sample_log.h"
#include "train/run_directory.h"

namespace syntra {

class RunRecords {
 public:
  // Opens the files of a run that stands at `resumed`, and removes what it will train and evaluate
  // again. The file of samples is opened if evaluation.samples asks for it or if it exists.
  RunRecords(const RunDirectory& directory, const std::string& run_id, const Config& config,
             const ResumePoint& resumed);

  // Records the numbers of a step or an evaluation.
  void Write(int64_t step, const NamedValues& values);
  // Records an event (event_log.h).
  void WriteEvent(const std::string& event, int64_t step, const Json& facts = Json::object());
  // Records that this process, which began `seconds` ago, starts or continues the run, with the
  // steps and the time that were lost since the process before.
  void WriteStart(int64_t step, double seconds, Json facts);
  // Only with evaluation.samples.
  void WriteSample(const SampleLine& sample) { samples_->Write(sample); }

  // Replaces metrics.prom, which Write does only from time to time.
  void WritePrometheus() { prometheus_.Write(); }
  // Makes the lines that were written survive a crash. This comes before a checkpoint is written: a
  // run that continues from it keeps the lines up to there.
  void Sync() const;

 private:
  MetricsLog metrics_;
  EventLog events_;
  std::optional<SampleLog> samples_;
  EventFile tensorboard_;
  PrometheusFile prometheus_;
};

}  // namespace syntra
