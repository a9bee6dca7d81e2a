// SPDX-License-Identifier: Apache-2.0
#include "run/event_file.h"

#include <unistd.h>

#include <cmath>

#include "base/clock.h"
#include "base/error.h"
#include "base/host.h"
#include "base/log.h"
#include "base/tfrecord.h"
#include "run/event.pb.h"

namespace syntra {
namespace {

Path NewFileName(const Path& directory, double unix_time) {
  try {
    CreateDirectories(directory);
  } catch (const Error& error) {
    Log().warn("{}", error.what());
  }
  // TensorBoard reads the files of a directory in the order of their names, so the time comes
  // first.
  return directory / fmt::format("events.out.tfevents.{:010}.{}.{}",
                                 static_cast<int64_t>(unix_time), HostName(), getpid());
}

}  // namespace

EventFile::EventFile(const Path& directory, int64_t first_step, std::function<double()> unix_time)
    : unix_time_(unix_time ? std::move(unix_time) : UnixSeconds),
      path_(NewFileName(directory, unix_time_())),
      file_(path_) {
  tensorboard::Event event;
  event.set_wall_time(unix_time_());
  event.set_file_version("brain.Event:2");
  file_.Append(FrameTfRecord(event.SerializeAsString()));
  event.set_step(first_step);
  event.mutable_session_log()->set_status(tensorboard::SessionLog::START);
  file_.Append(FrameTfRecord(event.SerializeAsString()));
}

void EventFile::Write(int64_t step, const NamedValues& values) {
  tensorboard::Event event;
  event.set_wall_time(unix_time_());
  event.set_step(step);
  for (const auto& [tag, value] : values) {
    if (!std::isfinite(value)) continue;
    auto* scalar = event.mutable_summary()->add_value();
    scalar->set_tag(tag);
    scalar->set_simple_value(static_cast<float>(value));
  }
  file_.Append(FrameTfRecord(event.SerializeAsString()));
}

}  // namespace syntra
