// SPDX-License-Identifier: Apache-2.0
// A token shard whose digest is right: what is opened is sound, so that no index leads outside.
#include "data/token_shard.h"

#include <algorithm>
#include <cstring>

#include "fuzz/target.h"

namespace syntra {
namespace {

// A digest that is wrong is noticed.
void CheckIsRefused(std::string_view input) {
  bool refused = false;
  try {
    const TokenShard shard(InputFile(input, "input.tokens"));
  } catch (const Error& error) {
    refused = MayBeRefused(fuzz_token_shard, input, error.code());
  }
  SYNTRA_CHECK(refused);
}

void Run(std::string_view input) {
  std::string file(input);
  const size_t covered = file.size() < sizeof(Digest) ? 0 : file.size() - sizeof(Digest);
  if (covered > 0) {
    const Digest digest = DigestOf(std::string_view(file).substr(0, covered));
    std::memcpy(file.data() + covered, digest.data(), digest.size());
  }
  if (file != input) CheckIsRefused(input);
  const TokenShard shard(InputFile(file, "input.tokens"));
  std::vector<int32_t> tokens(shard.token_count());
  shard.CopyTokens(0, tokens);
  uint32_t largest = 0;
  for (const int32_t token : tokens) largest = std::max(largest, static_cast<uint32_t>(token));
  SYNTRA_CHECK(shard.LargestToken() == largest);
  int64_t total = 0;
  for (int64_t i = 0; i < shard.document_count(); ++i) {
    SYNTRA_CHECK(shard.DocumentBegin(i) == total && shard.DocumentLength(i) > 0);
    total += shard.DocumentLength(i);
    std::vector<int32_t> document(shard.DocumentLength(i));
    shard.CopyTokens(shard.DocumentBegin(i), document);
  }
  SYNTRA_CHECK(total == shard.token_count());
}

std::string Shard(int documents, int64_t vocabulary_size) {
  const Path path = InputDirectory() / "seed.tokens";
  TokenShardWriter writer(path, vocabulary_size);
  for (int i = 0; i < documents; ++i) writer.AddDocument(std::vector<int32_t>(i + 1, i));
  ShardFacts facts;
  writer.Commit(&facts);
  return ReadWholeFile(path);
}

std::vector<std::string> Seeds() { return {Shard(0, 10), Shard(5, 10), Shard(40, 100000)}; }

}  // namespace

const Target fuzz_token_shard = {.name = "token_shard",
                                 .refusals = {ExitCode::kData},
                                 .run = Run,
                                 .seeds = Seeds,
                                 .tokens = {"SYNTOKEN"},
                                 .mutations = 3000};

}  // namespace syntra
