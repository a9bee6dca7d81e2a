// SPDX-License-Identifier: Apache-2.0
// Makes one token shard from one corpus file.
#pragma once

#include "data/prepare.h"
#include "data/prepare_reporter.h"
#include "data/token_shard.h"

namespace syntra {

// A corpus file as it was when its bytes were digested.
struct DigestedSource {
  int64_t bytes;
  Digest digest;
  int64_t time;  // ChangeTime
};

class ShardBuilder {
 public:
  // `settings`: SettingsDigest of the options. All four must outlive this.
  ShardBuilder(const PrepareOptions& options, const Tokenizer& tokenizer, const Digest& settings,
               PrepareReporter& reporter)
      : options_(options), tokenizer_(tokenizer), settings_(settings), reporter_(reporter) {}

  // The file as it is now.
  DigestedSource DigestNow(const Path& source);

  // Reads the corpus file, tokenizes it on all threads, and writes the shard, which replaces one
  // that is there. For the holder of the shard's claim. Throws Error(kData) for a file with too
  // many bad records, or one that has changed since it was digested.
  void Build(const Path& source, const DigestedSource& digested, const Path& shard);

 private:
  const PrepareOptions& options_;
  const Tokenizer& tokenizer_;
  const Digest& settings_;
  PrepareReporter& reporter_;
};

}  // namespace syntra
