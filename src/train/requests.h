// What this rank of a run has been asked for: by signals, by a time limit and, on rank 0, by the
// files STOP and SAVE. Ranks that work together combine their wishes in a collective; where they
// work apart, a file tells the others.
#pragma once

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

  // Save and stop, with code 75; once true, always.
  bool stop();
  // Save and go on; each request is reported once.
  bool TakeSave();
  // Whether any rank has been asked to stop, also one that is far from the next collective. What
  // it returns says nothing about the moment at which other ranks will see it.
  bool StopOfAnyRank();

 private:
  void Poll();

  RequestOptions options_;
  double end_;
  bool stop_ = false, save_ = false;
  Path note_;  // there while ranks are to stop
};

}  // namespace syntra
