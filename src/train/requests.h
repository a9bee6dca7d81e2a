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
  Path log_directory;        // shared by all ranks
  bool takes_files = false;  // for one rank: it obeys STOP and SAVE, and removes old ones
  double seconds = 0;        // the run stops by itself so long from now; 0: it does not
};

class Requests {
 public:
  explicit Requests(RequestOptions options);

  // Looks for new requests, which costs two system calls where it takes files. Returns whether this
  // rank is asked to save and stop with code 75; once that is true, it stays true.
  bool Stop();
  // Whether Stop has found a request to save and go on; each request is reported once.
  bool TakeSave() { return std::exchange(save_, false); }
  // Whether any rank has been asked to stop, also one that is far from its next collective. The
  // other ranks may find out earlier or later.
  bool StopOfAnyRank();

 private:
  RequestOptions options_;
  double end_;
  bool stop_ = false, save_ = false;
  Path note_;  // the file that exists while the ranks are asked to stop
};

}  // namespace syntra
