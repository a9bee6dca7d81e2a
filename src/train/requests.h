// SPDX-License-Identifier: Apache-2.0
// What this rank of a run has been asked for: by signals, by a time limit and, on rank 0, by the
// files STOP and SAVE. Ranks that work together combine their wishes in a collective; where they
// work apart, a file tells the others.
#pragma once

#include <utility>

#include "base/file.h"

namespace syntra {

struct RequestOptions {
  Path run_directory;
  Path log_directory;        // of all ranks, on a shared file system
  bool takes_files = false;  // one rank obeys STOP and SAVE, and clears what an earlier run left
  double seconds = 0;        // until this run stops by itself, from now; 0: it does not
};

class Requests {
 public:
  explicit Requests(RequestOptions options);

  // Looks for new requests, the files with two calls of the file system. Whether this rank is asked
  // to save and stop, with code 75; once true, always.
  bool Stop();
  // Of the requests that were found: to save and go on; each is reported once.
  bool TakeSave() { return std::exchange(save_, false); }
  // Whether any rank has been asked to stop, also one that is far from the next collective. What
  // it returns says nothing about the moment at which other ranks will see it.
  bool StopOfAnyRank();

 private:
  RequestOptions options_;
  double end_;
  bool stop_ = false, save_ = false;
  Path note_;  // there while ranks are to stop
};

}  // namespace syntra
