// SPDX-License-Identifier: Apache-2.0
// A token shard whose checksums are right: what is opened is sound, so that no index leads outside.
#include "data/token_shard.h"

#include "fuzz/target.h"

namespace syntra {
namespace {

constexpr int64_t kVocabulary = 32100;

// Checksums that are missing or wrong are noticed.
void CheckIsRefused(std::string_view input) {
  bool refused = false;
  try {
    TokenShard(InputFile(input, "input.tokens"), kVocabulary).Verify();
  } catch (const Error& error) {
    refused = MayBeRefused(fuzz_token_shard, input, error.code());
  }
  SYNTRA_CHECK(refused);
}

// The input with right checksums at its end, in place of those that it may have.
std::string WithChecksums(std::string_view input) {
  const auto bytes = std::as_bytes(std::span(input));
  const std::optional<Checksums> own = Checksums::AtEndOf(bytes);
  const size_t size = own ? own->content().size() : input.size() - input.size() % 8;
  ChecksumWriter summer;
  summer.Add(bytes.first(size));
  const std::vector<std::byte> end = summer.End();
  std::string file(input.substr(0, size));
  return file.append(reinterpret_cast<const char*>(end.data()), end.size());
}

void Run(std::string_view input) {
  const std::string file = WithChecksums(input);
  if (file != input) CheckIsRefused(input);
  const TokenShard shard(InputFile(file, "input.tokens"), kVocabulary);
  shard.Verify();
  std::vector<int32_t> tokens(shard.token_count());
  shard.CopyTokens(0, tokens);
  for (const int32_t token : tokens) SYNTRA_CHECK(token >= 0 && token < kVocabulary);
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
                                 .tokens = {"SYNTOKEN", "SYNTSUMS"},
                                 .mutations = 3000};

}  // namespace syntra
