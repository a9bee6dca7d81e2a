// SPDX-License-Identifier: Apache-2.0
#include "tasks/submission.h"

#include "base/log.h"
#include "base/text.h"
#include "tasks/zip.h"

namespace syntra {
namespace {

// Warns of each file that is not whole. Returns whether there is one.
bool WarnOfLackingRows(const Benchmark& benchmark, const LackingRows& lacking) {
  bool lacks = false;
  for (const std::string& file : benchmark.files) {
    const auto found = lacking.find(file);
    if (found == lacking.end()) continue;
    lacks = true;
    Log().warn(
        "{} lacks the answers to {} of its test file; {} takes only whole files. Mend "
        "the rows that the log names, and finetune in a new directory",
        file, Counted(found->second, "bad row"), benchmark.server);
  }
  return lacks;
}

void ZipSubmission(const Benchmark& benchmark, const Path& directory, const LackingRows& lacking) {
  std::vector<ZipMember> members;
  std::vector<std::string> missing;
  for (const std::string& file : benchmark.files) {
    if (Exists(directory / file)) {
      members.push_back({file, ReadWholeFile(directory / file)});
    } else {
      missing.push_back(file);
    }
  }
  if (members.empty()) return;
  const Path archive = directory / (benchmark.name + ".zip");
  ReplaceFileDurably(archive, ZipOf(members));
  const bool lacks_rows = WarnOfLackingRows(benchmark, lacking);
  if (missing.empty() && !lacks_rows) {
    Log().info("{} is a full submission for {}", archive.string(), benchmark.server);
  } else if (!missing.empty()) {
    Log().info("{} has {} of the {} files that {} takes; a full submission also needs {}",
               archive.string(), members.size(), benchmark.files.size(), benchmark.server,
               Join(missing, ", "));
  }
}

}  // namespace

std::span<const Benchmark> Benchmarks() {
  static const std::vector<Benchmark> benchmarks = {
      {"glue",
       "gluebenchmark.com",
       {"CoLA.tsv", "SST-2.tsv", "MRPC.tsv", "STS-B.tsv", "QQP.tsv", "MNLI-m.tsv", "MNLI-mm.tsv",
        "QNLI.tsv", "RTE.tsv", "WNLI.tsv", "AX.tsv"}},
      {"superglue",
       "super.gluebenchmark.com",
       {"BoolQ.jsonl", "CB.jsonl", "COPA.jsonl", "MultiRC.jsonl", "ReCoRD.jsonl", "RTE.jsonl",
        "WiC.jsonl", "WSC.jsonl", "AX-b.jsonl", "AX-g.jsonl"}}};
  return benchmarks;
}

void ZipSubmissions(const Path& directory, const LackingRows& lacking) {
  for (const Benchmark& benchmark : Benchmarks()) ZipSubmission(benchmark, directory, lacking);
}

}  // namespace syntra
