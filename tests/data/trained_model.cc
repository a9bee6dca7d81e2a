// SPDX-License-Identifier: Apache-2.0
#include "tests/data/trained_model.h"

#include <sentencepiece_trainer.h>

#include "base/text.h"
#include "data/record_reader.h"
#include "tests/data/corpus_files.h"

namespace syntra {
namespace {

constexpr int kDocuments = 8;

}  // namespace

std::vector<std::string> TrainingDocuments() {
  const auto reader = OpenRecordReader(SamplePath("c4-validation.00000-of-00001.json.gz"), "text");
  std::vector<std::string> documents;
  Record record;
  for (int i = 0; i < kDocuments && reader->Next(&record); ++i) documents.emplace_back(record.text);
  return documents;
}

Path TrainedModel(const std::string& name, const std::string& options) {
  const Path directory = ScratchDirectory("model_" + name);
  const Path text = WriteScratch(directory / "text", Join(TrainingDocuments(), "\n") + '\n');
  const auto status = sentencepiece::SentencePieceTrainer::Train(
      // Of two equal options the trainer takes the first.
      fmt::format("{} --input={} --model_prefix={} --vocab_size=200 --hard_vocab_limit=false "
                  "--seed_sentencepiece_size=1000 --num_threads=1 --minloglevel=2",
                  options, text.string(), (directory / "a").string()));
  EXPECT_TRUE(status.ok()) << status.ToString();
  return directory / "a.model";
}

}  // namespace syntra
