// SPDX-License-Identifier: Apache-2.0
#include "data/shard_builder.h"

#include <atomic>
#include <new>
#include <span>

#include "base/error.h"
#include "base/text.h"
#include "core/thread.h"
#include "data/byte_source.h"
#include "data/record_reader.h"

namespace syntra {
namespace {

// Documents are read, tokenized and written in blocks of this size: large enough for many threads,
// small enough for memory and for a quick stop.
constexpr size_t kBlockDocuments = 1000;
constexpr size_t kBlockTextBytes = size_t{4} << 20;
constexpr size_t kKeptTextBytes = 64 << 10;  // of a document, until the next block

struct Document {
  std::string text;
  std::vector<int32_t> ids;
};

// Fills the front of `block` with the next documents. Returns how many; 0 at the end of the file.
size_t ReadBlock(RecordReader* reader, BadRecordLedger* ledger, std::span<Document> block) {
  size_t count = 0, bytes = 0;
  for (Record record; count < block.size() && bytes < kBlockTextBytes;) {
    if (!NextGood(reader, ledger, &record)) break;
    block[count++].text = record.text;
    bytes += record.text.size();
  }
  return count;
}

// Tokenizes on all threads. Each document is encoded alone, so the ids do not depend on their
// number.
void EncodeAll(const Tokenizer& tokenizer, std::span<Document> documents) {
  std::atomic<bool> failed = false;
  ParallelTasks(std::ssize(documents), [&](int64_t i) {
    try {
      tokenizer.Encode(documents[i].text, &documents[i].ids);
    } catch (...) {
      failed = true;
    }
  });
  if (!failed) return;
  // Again one by one: memory may suffice for that, and if not, the document is the one to blame.
  for (Document& document : documents) {
    try {
      tokenizer.Encode(document.text, &document.ids);
    } catch (const std::bad_alloc&) {
      Fail(ExitCode::kResources,
           "not enough memory to tokenize a document of {}; let the process have more, or split "
           "the document",
           HumanBytes(static_cast<double>(document.text.size())));
    }
  }
}

}  // namespace

DigestedSource ShardBuilder::DigestNow(const Path& source) {
  const int64_t time = ChangeTime(source);
  File file = OpenCorpusFile(source);
  const Digest digest = DigestOfRest(file, [this] { reporter_.Compared(); });
  return {file.Size(), digest, time};
}

void ShardBuilder::Build(const Path& source, const DigestedSource& digested, const Path& shard) {
  const std::unique_ptr<RecordReader> reader = OpenRecordReader(source, options_.text_field);
  BadRecordLedger ledger(source, options_.on_bad_record);
  TokenShardWriter writer(shard, tokenizer_.vocabulary_size());
  std::vector<Document> block(kBlockDocuments);  // whose memory is used again
  while (const size_t count = ReadBlock(reader.get(), &ledger, block)) {
    const std::span<Document> documents = std::span(block).first(count);
    EncodeAll(tokenizer_, documents);
    int64_t tokens = 0;
    for (Document& document : documents) {
      writer.AddDocument(document.ids);
      tokens += std::ssize(document.ids);
      // Otherwise each place of the block would come to be as large as the longest document.
      if (document.text.capacity() > kKeptTextBytes) document = {};
    }
    reporter_.Made(std::ssize(documents), tokens);
  }
  ledger.Finish();
  // A file that is still being written or copied.
  if (ChangeTime(source) != digested.time && DigestNow(source).digest != digested.digest) {
    Fail(ExitCode::kData, "it changed while it was read; start again when it is complete");
  }
  ShardFacts facts{.bad_records = static_cast<uint64_t>(ledger.bad()),
                   .source_bytes = static_cast<uint64_t>(digested.bytes),
                   .source = digested.digest,
                   .tokenizer = tokenizer_.digest(),
                   .settings = settings_};
  writer.Commit(&facts);
}

}  // namespace syntra
