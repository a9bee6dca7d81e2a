// SPDX-License-Identifier: Apache-2.0
// TFRecord files: the input as a file, and as the data of a record whose checksums are right.
#include "base/tfrecord.h"
#include "data/record_reader.h"
#include "fuzz/target.h"
#include "tests/data/corpus_files.h"

namespace syntra {
namespace {

// The good texts of a file.
std::vector<std::string> Texts(const Path& path) {
  const auto reader = OpenRecordReader(path, "text");
  std::vector<std::string> texts;
  for (Record record; reader->Next(&record);) {
    if (record.fault != RecordFault::kNone) continue;
    SYNTRA_CHECK(CheckText(record.text) == RecordFault::kNone);
    texts.emplace_back(record.text);
  }
  CheckEnd(path);  // what could be read to its end is not cut short
  return texts;
}

void Run(std::string_view input) {
  const std::string last = FrameTfRecord(TfExample("text", "last"));
  const Path framed = InputFile(FrameTfRecord(input) + last, "framed.tfrecord");
  const std::vector<std::string> texts = Texts(framed);
  SYNTRA_CHECK(!texts.empty() && texts.size() <= 2 && texts.back() == "last");
  Texts(InputFile(input, "input.tfrecord"));
}

std::vector<std::string> Seeds() {
  const std::string example = TfExample("text",
                                        "d\xc3\xb6"
                                        "cument"),
                    other = TfExample("url", "a");
  return {FrameTfRecord(example), FrameTfRecord(other) + FrameTfRecord(example), ""};
}

}  // namespace

const Target fuzz_tf_records = {.name = "tf_records",
                                .refusals = {ExitCode::kData},
                                .run = Run,
                                .seeds = Seeds,
                                .tokens = {FrameTfRecord(""), FrameTfRecord(TfExample("text", "a")),
                                           TfExample("text", "b"), "text"},
                                .mutations = 3000};

}  // namespace syntra
