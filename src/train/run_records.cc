// SPDX-License-Identifier: Apache-2.0
#include "train/run_records.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"

namespace syntra {

RunRecords::RunRecords(const RunDirectory& directory, const std::string& run_id,
                       const Config& config, const ResumePoint& resumed)
    : metrics_(directory.metrics(), resumed),
      events_(directory.events()),
      tensorboard_(directory.tensorboard(), resumed.first_step()),
      prometheus_(directory.prometheus(), {{"run", directory.name()}, {"run_id", run_id}}) {
  if (config.evaluation().samples() > 0 || Exists(directory.samples())) {
    samples_.emplace(directory.samples(), resumed);
  }
  prometheus_.Set("target_steps", static_cast<double>(config.train().steps()));
  for (const auto& [event, count] : events_.earlier()) prometheus_.Count(event, count);
}

void RunRecords::Write(int64_t step, const NamedValues& values) {
  metrics_.Write(step, values);
  // An evaluation that is made again has the same values, and TensorBoard has them from before.
  if (!metrics_.repeats_evaluation(step)) tensorboard_.Write(step, values);
  prometheus_.Set("step", static_cast<double>(step));
  prometheus_.Set(values);
  prometheus_.WriteIfDue();
}

void RunRecords::WriteEvent(const std::string& event, int64_t step, const Json& facts) {
  events_.Write(event, step, facts);
  prometheus_.Count(event);
}

// The lost steps and the idle time can be recorded only now: the lines that told of them are gone.
void RunRecords::WriteStart(int64_t step, double seconds, Json facts) {
  facts["seconds"] = seconds;
  const double last_sign = std::fmax(metrics_.last_time(), events_.last_time());
  if (std::isfinite(last_sign)) {
    const double idle = UnixSeconds() - seconds - last_sign;
    facts.update({{"lost_steps", metrics_.lost().steps},
                  {"lost_seconds", metrics_.lost().seconds},
                  {"idle_seconds", std::max(0.0, idle)}});
  }
  WriteEvent("start", step, facts);
}

void RunRecords::Sync() const {
  metrics_.Sync();
  events_.Sync();
  if (samples_) samples_->Sync();
}

}  // namespace syntra
