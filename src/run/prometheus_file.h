// SPDX-License-Identifier: Apache-2.0
// metrics.prom: a run's state, for Prometheus, in its text format. node_exporter's textfile
// collector reads it; the run itself opens no port.
//
//   syntra_<name>        gauge: the latest value of that name in metrics.jsonl; syntra_step, the
//                        steps that are done; syntra_target_steps, those of the whole run
//   syntra_events_total  counter, label `event`: the lines of events.jsonl
//
// Every line has the labels `run`, the name of the run directory, and `run_id`.
// Source: https://prometheus.io/docs/instrumenting/exposition_formats (version 0.0.4).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/named_value.h"

namespace syntra {

class PrometheusFile {
 public:
  // The least time between two writes: as often as Prometheus usually looks.
  static constexpr double kSeconds = 15;

  using Labels = std::vector<std::pair<std::string, std::string>>;
  // `seconds` is a monotonic clock; by default the system's.
  PrometheusFile(const Path& path, const Labels& labels, std::function<double()> seconds = {});

  void Set(const std::string& name, double value) { values_[name] = value; }
  void Set(const NamedValues& values);
  void Count(const std::string& event, int64_t times = 1) { events_[event] += times; }

  // Replaces the file in one step: readers see the old or the new one, never a part. Training does
  // not wait until it is on the disk. The first problem is a warning, and none stops training.
  void Write();
  // As Write, if the last time is kSeconds ago.
  void WriteIfDue();

  std::string Text() const;

 private:
  Path path_;
  std::string labels_;  // run="a",run_id="0123"
  std::function<double()> seconds_;
  std::map<std::string, double> values_;
  std::map<std::string, int64_t> events_;
  double due_;
  bool warned_ = false;
};

}  // namespace syntra
