// SPDX-License-Identifier: Apache-2.0
#include "data/corpus_index.h"

#include <limits>

#include "base/error.h"
#include "base/json.h"

namespace syntra {
namespace {

constexpr char kFormat[] = "syntra token corpus";
constexpr int kIndexVersion = 2;  // 1 listed shards without checksums of their blocks
constexpr int64_t kMaxBytes = int64_t{256} << 20;

// A count of documents, tokens or bytes; so small that no sum over the shards overflows.
int64_t NonNegative(const Json& value, size_t shards) {
  const int64_t most = std::numeric_limits<int64_t>::max() / static_cast<int64_t>(shards);
  const int64_t count = IntegerOf(value);
  if (count < 0 || count > most) {
    throw Json::out_of_range::create(406, fmt::format("{} is no count", count), nullptr);
  }
  return count;
}

int64_t Sum(const std::vector<IndexEntry>& entries, int64_t IndexEntry::*field) {
  int64_t sum = 0;
  for (const IndexEntry& entry : entries) sum += entry.*field;
  return sum;
}

}  // namespace

int64_t CorpusIndex::documents() const { return Sum(shards, &IndexEntry::documents); }
int64_t CorpusIndex::tokens() const { return Sum(shards, &IndexEntry::tokens); }
int64_t CorpusIndex::empty_documents() const { return Sum(shards, &IndexEntry::empty_documents); }
int64_t CorpusIndex::bad_records() const { return Sum(shards, &IndexEntry::bad_records); }

double CorpusIndex::opened_bytes() const {
  constexpr double kOffsetBytes = 8, kMostTokenBytes = 4, kChecksumBytes = 8;
  constexpr double kOfChecksums = kChecksumBytes / kChecksumBlock;
  return kOffsetBytes * static_cast<double>(documents()) +
         kMostTokenBytes * kOfChecksums * static_cast<double>(tokens());
}

Digest CorpusIndex::DataDigest() const {
  std::string text;
  for (const IndexEntry& entry : shards) text += entry.digest + '\n';
  return DigestOf(text);
}

Digest SettingsDigest(const std::string& text_field, const Tokenizer& tokenizer) {
  std::string text =
      fmt::format("text_field={}\nvocabulary={}\n", text_field, tokenizer.vocabulary_size());
  const std::string identity = tokenizer.identity();
  // For most models the model file alone decides the ids, and the shards store its digest anyway.
  if (identity != ToHex(tokenizer.digest())) text += "tokenizer=" + identity + '\n';
  return DigestOf(text);
}

IndexEntry EntryOf(const ShardSummary& shard, const Path& source) {
  const ShardFacts& facts = shard.facts;
  return {.file = shard.path.filename().string(),
          .source = source.string(),
          .documents = static_cast<int64_t>(facts.documents),
          .tokens = static_cast<int64_t>(facts.tokens),
          .empty_documents = static_cast<int64_t>(facts.empty_documents),
          .bad_records = static_cast<int64_t>(facts.bad_records),
          .source_bytes = static_cast<int64_t>(facts.source_bytes),
          .digest = ToHex(shard.digest)};
}

void WriteIndex(const Path& directory, const CorpusIndex& index) {
  Json shards = Json::array();
  for (const IndexEntry& entry : index.shards) {
    shards.push_back({{"file", entry.file},
                      {"source", entry.source},
                      {"documents", entry.documents},
                      {"tokens", entry.tokens},
                      {"empty_documents", entry.empty_documents},
                      {"bad_records", entry.bad_records},
                      {"source_bytes", entry.source_bytes},
                      {"digest", entry.digest},
                      {"file_time", entry.file_time},
                      {"source_time", entry.source_time}});
  }
  const Json root = {{"format", kFormat},
                     {"version", kIndexVersion},
                     {"tokenizer", index.tokenizer},
                     {"settings", index.settings},
                     {"shards", std::move(shards)}};
  ReplaceFileDurably(directory / kCorpusIndexName, JsonText(root, 1) + "\n");
}

CorpusIndex ReadIndex(const Path& directory) {
  const Path path = directory / kCorpusIndexName;
  if (!Exists(path)) {
    Fail(ExitCode::kData, "{} does not exist: the corpus has not been prepared there",
         path.string());
  }
  try {
    const Json root = ParseJson(ReadWholeFile(path, kMaxBytes, ExitCode::kData));
    if (root.at("format") != kFormat || root.at("version") != kIndexVersion) {
      Fail(ExitCode::kData, "{} is not a version {} \"{}\"", path.string(), kIndexVersion, kFormat);
    }
    CorpusIndex index{
        .tokenizer = root.at("tokenizer"), .settings = root.at("settings"), .shards = {}};
    const Json& shards = root.at("shards");
    for (const Json& item : shards) {
      const auto count = [&](const char* name) {
        return NonNegative(item.at(name), shards.size());
      };
      IndexEntry entry{.file = item.at("file"),
                       .source = item.at("source"),
                       .documents = count("documents"),
                       .tokens = count("tokens"),
                       .empty_documents = count("empty_documents"),
                       .bad_records = count("bad_records"),
                       .source_bytes = count("source_bytes"),
                       .digest = item.at("digest"),
                       .file_time = IntegerOf(item.value("file_time", Json(0))),
                       .source_time = IntegerOf(item.value("source_time", Json(0)))};
      if (Path(entry.file).filename() != entry.file || entry.file.empty() || entry.file == "..") {
        Fail(ExitCode::kData, "{}: \"{}\" is not a plain file name", path.string(), entry.file);
      }
      index.shards.push_back(std::move(entry));
    }
    return index;
  } catch (const Json::exception& error) {
    Fail(ExitCode::kData, "{} is damaged: {}", path.string(), error.what());
  }
}

}  // namespace syntra
