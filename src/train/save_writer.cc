// SPDX-License-Identifier: Apache-2.0
#include "train/save_writer.h"

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "checkpoint/layout.h"
#include "core/thread.h"
#include "run/failpoint.h"

namespace syntra {
namespace {

constexpr std::chrono::seconds kSlowSaving{12};  // failpoint.h

bool IsReady(const auto& future) {
  return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

}  // namespace

template <typename Work>
auto SaveWriter::Launch(SaveMode mode, Work work) {
  if (mode != SaveMode::kBackground) return std::async(std::launch::deferred, std::move(work));
  return std::async(
      std::launch::async, [this, step = step_, trace = run_.trace, work = std::move(work)] {
        const TraceSpan span(trace, TraceLane::kCheckpoint, "write checkpoint", step);
        pthread_setname_np(pthread_self(), "save");  // what reports of hangs and debuggers call it
        SetThreadCount(1);                           // the others train
        const int rank = run_.ranks.rank(), ranks = run_.ranks.size();
        if (Failpoint("freeze_saving", step, rank, ranks)) raise(SIGSTOP);
        if (Failpoint("slow_saving", step, rank, ranks)) std::this_thread::sleep_for(kSlowSaving);
        return work();
      });
}

bool SaveWriter::Begin(int64_t step, SaveMode mode) {
  step_ = step;
  return is_shared_ ? BeginParts(mode) : BeginWhole(mode);
}

bool SaveWriter::BeginWhole(SaveMode mode) {
  if (!run_.is_chief()) return true;
  run_.chief->lock.CheckHeld();
  return Try(mode, [&] {
    saving_ = Launch(mode, [this, position = Position(), state = StateToWrite(mode)] {
      run_.chief->records->Sync();
      SaveSnapshot(run_.directory.checkpoints(), run_.identity, position, state,
                   OptionsOf(run_.config, run_.chief->lock));
    });
  });
}

bool SaveWriter::BeginParts(SaveMode mode) {
  std::string begun;
  if (run_.is_chief()) {
    run_.chief->lock.CheckHeld();
    Try(mode, [&] { begun = shared_.Begin(Position(), state_.replica.HostTensors()); });
  }
  BroadcastText(run_.ranks, &begun);
  if (begun.empty()) return false;
  const auto start = Clock::now();
  try {
    part_ = Launch(
        mode, [this, begun, part = StateToWrite(mode)] { return shared_.WritePart(begun, part); });
  } catch (const std::exception&) {  // no memory for a copy, or no thread
    std::promise<std::string> failed;
    failed.set_value(SharedSnapshot::Failed());
    part_ = failed.get_future();
  }
  tries_.AddWait(SecondsSince(start));
  return true;
}

// Where ranks share the state, rank 0 also writes what all of them have.
std::vector<TensorRecord> SaveWriter::StateToWrite(SaveMode mode) {
  std::vector<HostTensor> state = state_.replica.FetchTensors();
  if (!run_.is_chief()) {
    std::erase_if(
        state, [](const HostTensor& tensor) { return tensor.name.starts_with(kParametersGroup); });
  }
  if (mode != SaveMode::kBackground) return RecordsOf(state);
  copy_.Take(state);
  return copy_.tensors();
}

void SaveWriter::CommitIfWritten() {
  if (!AnyRank(run_.ranks, !IsReady(part_))) BeginCommit(SaveMode::kBackground);
}

void SaveWriter::BeginCommit(SaveMode mode) {
  const auto start = Clock::now();
  const std::vector<std::string> answers = run_.ranks.Gather(part_.get());
  if (!run_.is_chief()) return;
  tries_.AddWait(SecondsSince(start));
  const bool begun = Try(mode, [&] {
    saving_ = Launch(mode, [this, answers] {
      run_.chief->records->Sync();
      shared_.Commit(answers);
    });
  });
  failed_ |= !begun;
}

bool SaveWriter::IsWriting() {
  if (saving_.valid() && IsReady(saving_)) Finish();
  return saving_.valid();
}

void SaveWriter::Finish(SaveMode mode) {
  if (part_.valid()) BeginCommit(mode);
  if (!saving_.valid()) return;
  failed_ = !Try(mode, [&] { saving_.get(); });
  if (failed_) return;
  run_.chief->status.Progress(step_);
  run_.chief->records->WriteEvent("save", step_, {{"seconds", tries_.Succeeded()}});
}

void SaveWriter::FinishAlone() {
  if (part_.valid()) part_.wait();
  if (saving_.valid()) saving_.get();
}

bool SaveWriter::TakeFailure() { return std::exchange(failed_, false); }

RunPosition SaveWriter::Position() const {
  return {.step = step_,
          .skipped_steps = state_.skipped.ToText(),
          .recent_losses = state_.spikes.ToText(),
          .rollbacks = state_.rollbacks.ToText(),
          .data_position = state_.data.PositionAt(state_.rollbacks.BatchAt(step_),
                                                  run_.config.train().batch_size())};
}

}  // namespace syntra
