// SPDX-License-Identifier: Apache-2.0
// Submission files as the servers of GLUE and SuperGLUE take them.
#include "tasks/submission.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>

#include "tasks/zip.h"
#include "tests/base/scratch.h"
#include "tests/tasks/tasks.h"

namespace syntra {
namespace {

std::string Submitted(const std::string& kind, const std::vector<Prediction>& predictions) {
  return TaskOf(kind + " {}")->Submission(predictions);
}

Prediction Of(const std::string& id, const std::string& text) {
  return {.example = {.inputs = "", .targets = "Tom", .id = id}, .text = text};
}

// The first lines of files that GLUE's server has taken.
TEST(Submission, TablesOfGlue) {
  const std::string header = "index\tprediction\n";
  EXPECT_EQ(Submitted("cola", {Of("0", "acceptable"), Of("1", "unacceptable")}),
            header + "0\t1\n1\t0\n");
  EXPECT_EQ(Submitted("mrpc", {Of("0", "not_equivalent")}), header + "0\t0\n");
  EXPECT_EQ(Submitted("sst2", {Of("0", "positive")}), header + "0\t1\n");
  EXPECT_EQ(Submitted("mnli", {Of("0", "entailment"), Of("1", "neutral")}),
            header + "0\tentailment\n1\tneutral\n");
  EXPECT_EQ(Submitted("qnli", {Of("12", "not_entailment")}), header + "12\tnot_entailment\n");
  EXPECT_EQ(Submitted("stsb", {Of("0", "3.6"), Of("1", "7"), Of("2", "none")}),
            header + "0\t3.6\n1\t5.0\n2\t0.0\n");
}

TEST(Submission, FilesHaveTheServersNames) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> names = {
      {"cola", {"CoLA.tsv"}},       {"sst2", {"SST-2.tsv"}},
      {"mrpc", {"MRPC.tsv"}},       {"stsb", {"STS-B.tsv"}},
      {"qqp", {"QQP.tsv"}},         {"mnli", {"MNLI-m.tsv", "MNLI-mm.tsv", "AX.tsv"}},
      {"qnli", {"QNLI.tsv"}},       {"rte", {"RTE.tsv"}},
      {"wnli", {"WNLI.tsv"}},       {"wnli_as_wsc", {"WNLI.tsv"}},
      {"boolq", {"BoolQ.jsonl"}},   {"cb", {"CB.jsonl"}},
      {"copa", {"COPA.jsonl"}},     {"multirc", {"MultiRC.jsonl"}},
      {"record", {"ReCoRD.jsonl"}}, {"superglue_rte", {"RTE.jsonl"}},
      {"wic", {"WiC.jsonl"}},       {"wsc", {"WSC.jsonl"}},
      {"axb", {"AX-b.jsonl"}},      {"axg", {"AX-g.jsonl"}}};
  EXPECT_EQ(names.size(), BenchmarkKinds().size());
  for (const auto& [kind, files] : names) {
    std::vector<std::string> found;
    const std::unique_ptr<Task> task = TaskOf(kind + " {}");
    for (const TaskSplit& split : task->traits().splits) {
      if (!split.submission.empty()) found.push_back(split.submission);
    }
    EXPECT_EQ(found, files) << kind;
  }
}

// The servers' lists and the tasks agree.
TEST(Submission, EveryFileOfAServerHasATask) {
  std::map<std::string, std::set<std::string>> files;
  for (const std::string& kind : BenchmarkKinds()) {
    const std::unique_ptr<Task> task = TaskOf(kind + " {}");
    for (const TaskSplit& split : task->traits().splits) {
      if (!split.submission.empty()) files[task->traits().benchmark].insert(split.submission);
    }
  }
  ASSERT_EQ(files.size(), Benchmarks().size());
  for (const Benchmark& benchmark : Benchmarks()) {
    EXPECT_EQ(files[benchmark.name], std::set(benchmark.files.begin(), benchmark.files.end()));
  }
}

// Python reads the archive: its members, in order, with their content.
std::string ReadByPython(const Path& archive) {
  const std::string code =
      "import sys, zipfile\n"
      "with zipfile.ZipFile(sys.argv[1]) as z:\n"
      "    assert z.testzip() is None\n"
      "    for i in z.infolist():\n"
      "        print(i.filename, i.date_time, oct(i.external_attr >> 16), z.read(i))\n";
  const Path script = archive.parent_path() / "read.py",
             output = archive.parent_path() / "read.txt";
  ReplaceFileDurably(script, code);
  const std::string command =
      fmt::format("python3 {} {} > {} 2>&1", script.string(), archive.string(), output.string());
  EXPECT_EQ(std::system(command.c_str()), 0) << ReadWholeFile(output);
  return ReadWholeFile(output);
}

TEST(Submission, ArchivesHoldTheFilesThatAreThere) {
  const Path directory = ScratchDirectory("submission");
  ReplaceFileDurably(directory / "RTE.tsv", "index\tprediction\n0\tentailment\n");
  ReplaceFileDurably(directory / "CoLA.tsv", std::string(100000, 'a'));
  ReplaceFileDurably(directory / "notes.txt", "no file of a server");
  ZipSubmissions(directory);
  EXPECT_FALSE(Exists(directory / "superglue.zip"));
  const std::string archive = ReadWholeFile(directory / "glue.zip");
  EXPECT_LT(archive.size(), 2000u) << "deflated";
  if (std::system("python3 -c pass") != 0) GTEST_SKIP() << "python3 is not installed";
  EXPECT_EQ(ReadByPython(directory / "glue.zip"),
            "CoLA.tsv (1980, 1, 1, 0, 0, 0) 0o100644 b'" + std::string(100000, 'a') +
                "'\nRTE.tsv (1980, 1, 1, 0, 0, 0) 0o100644 "
                "b'index\\tprediction\\n0\\tentailment\\n'\n");
}

// Rows of a test file that are bad have no answers, which a server would refuse.
TEST(Submission, IsNotFullWhereAFileLacksRows) {
  const Path directory = ScratchDirectory("submission");
  for (const std::string& file : Benchmarks()[0].files) ReplaceFileDurably(directory / file, "x");
  const auto said = [&](const LackingRows& lacking) {
    testing::internal::CaptureStderr();
    ZipSubmissions(directory, lacking);
    return testing::internal::GetCapturedStderr();
  };
  const std::string full = "is a full submission for gluebenchmark.com";
  EXPECT_NE(said({{"AX-b.jsonl", 1}}).find(full), std::string::npos) << "of the other benchmark";
  const std::string text = said({{"CoLA.tsv", 1}, {"AX.tsv", 12}});
  EXPECT_EQ(text.find(full), std::string::npos) << text;
  for (const char* part : {"CoLA.tsv lacks the answers to 1 bad row of its test file",
                           "AX.tsv lacks the answers to 12 bad rows of its test file"}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

// At any time and in any zone.
TEST(Submission, EqualFilesGiveEqualArchives) {
  const ZipMember members[] = {{"a.tsv", "one"}, {"empty", ""}};
  const std::string archive = ZipOf(members);
  for (const char* zone :
       {"America/Los_Angeles", "Asia/Kathmandu", "Pacific/Kiritimati", "XYZ-5"}) {
    setenv("TZ", zone, 1);
    tzset();
    EXPECT_EQ(ZipOf(members), archive) << zone;
  }
  unsetenv("TZ");
  tzset();
}

TEST(Submission, LinesOfSuperGlue) {
  EXPECT_EQ(Submitted("boolq", {Of("0", "True"), Of("1", "maybe")}),
            "{\"idx\":0,\"label\":\"true\"}\n{\"idx\":1,\"label\":\"false\"}\n");
  EXPECT_EQ(Submitted("wic", {Of("3", "False")}), "{\"idx\":3,\"label\":\"false\"}\n");
  EXPECT_EQ(Submitted("cb", {Of("0", "neutral")}), "{\"idx\":0,\"label\":\"neutral\"}\n");
  EXPECT_EQ(Submitted("copa", {Of("0", "choice2"), Of("1", "choice1")}),
            "{\"idx\":0,\"label\":1}\n{\"idx\":1,\"label\":0}\n");
  EXPECT_EQ(Submitted("superglue_rte", {Of("0", "entailment")}),
            "{\"idx\":0,\"label\":\"entailment\"}\n");
  EXPECT_EQ(Submitted("record", {Of("9", "Zoé")}), "{\"idx\":9,\"label\":\"Zoé\"}\n");
  EXPECT_EQ(Submitted("wsc", {Of("0", "tom"), Of("1", "Bob"), Of("2", "")}),
            "{\"idx\":0,\"label\":\"True\"}\n{\"idx\":1,\"label\":\"False\"}\n{\"idx\":2,\"label\":"
            "\"False\"}\n");
  EXPECT_EQ(
      Submitted("multirc",
                {Of("0/0/0", "True"), Of("0/0/1", "False"), Of("0/1/0", "x"), Of("1/1/0", "True")}),
      R"({"idx":0,"passage":{"questions":[{"idx":0,"answers":[{"idx":0,"label":1},{"idx":1,"label":0}]},)"
      R"({"idx":1,"answers":[{"idx":0,"label":0}]}]}})"
      "\n"
      R"({"idx":1,"passage":{"questions":[{"idx":1,"answers":[{"idx":0,"label":1}]}]}})"
      "\n");
}

}  // namespace
}  // namespace syntra
