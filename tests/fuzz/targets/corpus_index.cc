// SPDX-License-Identifier: Apache-2.0
// INDEX.json of a prepared corpus: what is read can be counted, and is the same once written.
#include "data/corpus_index.h"

#include "fuzz/target.h"

namespace syntra {
namespace {

void Run(std::string_view input) {
  const Path directory = InputFile(input, kCorpusIndexName).parent_path();
  const CorpusIndex index = ReadIndex(directory);
  SYNTRA_CHECK(index.documents() >= 0 && index.tokens() >= 0 && index.bad_records() >= 0 &&
               index.empty_documents() >= 0);
  index.DataDigest();
  WriteIndex(directory, index);
  const std::string text = ReadWholeFile(directory / kCorpusIndexName);
  WriteIndex(directory, ReadIndex(directory));
  SYNTRA_CHECK(ReadWholeFile(directory / kCorpusIndexName) == text);
}

std::vector<std::string> Seeds() {
  const IndexEntry entry{.file = "a.tokens",
                         .source = "a.json.gz",
                         .documents = 10,
                         .tokens = 1000,
                         .source_bytes = 5000,
                         .digest = std::string(32, 'a'),
                         .file_time = 1700000000000000000};
  CorpusIndex index{.tokenizer = std::string(32, 'b'), .settings = std::string(32, 'c')};
  std::vector<std::string> seeds;
  for (int count = 0; count < 3; ++count) {
    WriteIndex(InputDirectory(), index);
    seeds.push_back(ReadWholeFile(InputDirectory() / kCorpusIndexName));
    index.shards.push_back(entry);
  }
  return seeds;
}

}  // namespace

const Target fuzz_corpus_index = {
    .name = "corpus_index",
    .refusals = {ExitCode::kData},
    .run = Run,
    .seeds = Seeds,
    .tokens = {"\"shards\"", "\"file\"", "\"tokens\"", "..", "/", "-1", "1e300",
               "9223372036854775807", "18446744073709551615", "null", "[", "{"},
    .mutations = 2000};

}  // namespace syntra
