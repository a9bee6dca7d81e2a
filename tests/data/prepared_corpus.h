// SPDX-License-Identifier: Apache-2.0
// A corpus for tests of its preparation.
#pragma once

#include <string>
#include <string_view>

#include "data/prepare.h"
#include "tests/data/corpus_files.h"

namespace syntra {

// `shards` json files of 40 documents each.
inline Path WriteCorpus(std::string_view name, int shards) {
  const Path directory = ScratchDirectory(name) / "corpus";
  CreateDirectories(directory);
  for (int shard = 0; shard < shards; ++shard) {
    std::string text;
    for (int document = 0; document < 40; ++document) {
      text +=
          fmt::format("{{\"text\":\"Document {} of shard {} says hello.\"}}\n", document, shard);
    }
    WriteScratch(directory / fmt::format("c-{:05}-of-{:05}.json.gz", shard, shards), Gzip(text));
  }
  return directory;
}

inline PrepareOptions OptionsFor(const Path& corpus) {
  return {.patterns = {(corpus / "c-*").string()}, .directory = corpus.parent_path() / "prepared"};
}

}  // namespace syntra
