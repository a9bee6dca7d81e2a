// SPDX-License-Identifier: Apache-2.0
#include "run/append_file.h"

#include "base/error.h"
#include "base/log.h"

namespace syntra {

AppendFile::AppendFile(const Path& path) : path_(path) {
  try {
    Open();
  } catch (const Error& error) {
    WarnOnce(error.what());
  }
}

void AppendFile::Open() {
  if (file_ && file_->IsStillNamed()) return;
  const bool was_open = file_.has_value(), is_there = Exists(path_);
  file_ = File::OpenForAppend(path_);
  part_.reset();
  if (!was_open) return;
  Log().warn("{} was removed or replaced while the run writes it; later records go to {}",
             path_.string(), is_there ? "the file that is there now" : "a new file");
}

void AppendFile::CutPart() {
  if (part_) file_->Truncate(*part_);
  part_.reset();
}

void AppendFile::Append(std::string_view record) {
  try {
    Open();
    CutPart();
    part_ = file_->Size();
    file_->Write(record);
    part_.reset();
    warned_ = false;
  } catch (const Error& error) {
    WarnOnce(error.what());
    try {
      CutPart();
    } catch (const Error&) {  // it is cut before the next record
    }
  }
}

// By a descriptor of its own, since Append may replace the other.
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
