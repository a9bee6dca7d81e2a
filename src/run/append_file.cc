// SPDX-License-Identifier: Apache-2.0
#include "run/append_file.h"

#include "base/error.h"
#include "base/log.h"

namespace syntra {

AppendFile::AppendFile(const Path& path) : path_(path) {
  try {
    file_.emplace(File::OpenForAppend(path));
  } catch (const Error& error) {
    WarnOnce(error.what());
  }
}

void AppendFile::OpenAgainIfReplaced() {
  if (file_->IsStillNamed()) return;
  const bool is_there = Exists(path_);
  file_ = File::OpenForAppend(path_);
  Log().warn("{} was removed or replaced while the run writes it; later records go to {}",
             path_.string(), is_there ? "the file that is there now" : "a new file");
}

void AppendFile::Append(std::string_view record) {
  if (!file_) return;
  int64_t size = -1;
  try {
    OpenAgainIfReplaced();
    size = file_->Size();
    file_->Write(record);
    warned_ = false;
  } catch (const Error& error) {
    WarnOnce(error.what());
    // A part of a record would spoil the one after it.
    if (size >= 0) DropFrom(size);
  }
}

void AppendFile::DropFrom(int64_t size) {
  try {
    file_->Truncate(size);
  } catch (const Error&) {
    file_.reset();
  }
}

// By a descriptor of its own, since Append may give up the other.
void AppendFile::Sync() const {
  try {
    if (!Exists(path_)) return;  // Append has warned
    File::OpenOwnForRead(path_).Sync();
  } catch (const Error& error) {
    Log().warn("{}; training goes on", error.what());
  }
}

void AppendFile::WarnOnce(const char* problem) {
  if (!warned_) Log().warn("{}; training goes on without these records", problem);
  warned_ = true;
}

}  // namespace syntra
