#include "train/event_file.h"

#include <isa-l/crc.h>
#include <unistd.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/host.h"
#include "base/log.h"
#include "event.pb.h"

namespace syntra {
namespace {

static_assert(std::endian::native == std::endian::little);

double SystemUnixTime() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

template <typename T>
std::string_view BytesOf(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// crc32c, rotated and offset as TFRecord asks so that a crc of data with crcs in it stays strong.
uint32_t MaskedCrc(std::string_view data) {
  // ISA-L reads the bytes although its parameter is not const.
  auto* bytes = reinterpret_cast<unsigned char*>(const_cast<char*>(data.data()));
  const uint32_t crc = ~crc32_iscsi(bytes, static_cast<int>(data.size()), ~uint32_t{0});
  return std::rotr(crc, 15) + 0xA282EAD8u;
}

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

std::string FrameTfRecord(std::string_view data) {
  SYNTRA_CHECK(data.size() < (size_t{1} << 30), "a record of {} bytes", data.size());
  const uint64_t length = data.size();
  const uint32_t length_crc = MaskedCrc(BytesOf(length)), data_crc = MaskedCrc(data);
  std::string record;
  record.append(BytesOf(length)).append(BytesOf(length_crc));
  record.append(data).append(BytesOf(data_crc));
  return record;
}

EventFile::EventFile(const Path& directory, int64_t first_step, std::function<double()> unix_time)
    : unix_time_(unix_time ? std::move(unix_time) : SystemUnixTime),
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
