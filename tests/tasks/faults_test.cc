// SPDX-License-Identifier: Apache-2.0
// Files as users have them, and rows that are bad.
#include <gtest/gtest.h>

#include "tests/data/corpus_files.h"
#include "tests/tasks/tasks.h"

namespace syntra {
namespace {

// A split whose file has `content`.
class Files {
 public:
  explicit Files(const std::string& kind) : task_(TaskOf(kind + " {}")) {}

  Files With(const std::string& file, std::string_view content) && {
    CreateDirectories((directory_ / file).parent_path());
    WriteScratch(directory_ / file, content);
    return std::move(*this);
  }

  std::vector<TaskExample> Read(std::string_view split = "validation") const {
    return syntra::Read(*task_, split, directory_);
  }
  // The reason why the first bad row is one.
  std::string Fault(std::string_view split = "validation") const {
    return DataErrorOf([&] { Read(split); });
  }
  std::vector<TaskExample> ReadWith(double max_fraction) const {
    return ReadSplit(
        *task_, SplitOf(*task_, "validation"),
        {.directory = directory_, .policy = {.fail = false, .max_fraction = max_fraction}});
  }

 private:
  std::unique_ptr<Task> task_;
  Path directory_ = ScratchDirectory("task_files");
};

void ExpectHas(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks " << part;
}

TEST(TaskFiles, QuotesMeanNothingInGluesTables) {
  const auto found =
      Files("sst2").With("SST-2/dev.tsv", "sentence\tlabel\n\"a \" b\t1\n'c\"\"\t0\n").Read();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].inputs, "sst2 sentence: \"a \" b");
  EXPECT_EQ(found[1].inputs, "sst2 sentence: 'c\"\"");
}

TEST(TaskFiles, ByteOrderMarksAndCarriageReturnsAreNoText) {
  const std::string mark = "\xEF\xBB\xBF";
  const auto table =
      Files("sst2").With("SST-2/dev.tsv", mark + "sentence\tlabel\r\na \t1\r\n\r\nb\t0\r\n").Read();
  ASSERT_EQ(table.size(), 2u);
  EXPECT_EQ(table[0].inputs, "sst2 sentence: a ");
  EXPECT_EQ(table[1].targets, "negative");
  const auto lines =
      Files("cb")
          .With(
              "CB/val.jsonl",
              mark + "{\"premise\":\"p\",\"hypothesis\":\"h\",\"label\":\"neutral\",\"idx\":7}\r\n")
          .Read();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].inputs, "cb hypothesis: h premise: p");
  EXPECT_EQ(lines[0].id, "7");
}

TEST(TaskFiles, ColumnsAreFoundByName) {
  // A development file of MNLI has four columns more than its training file.
  const auto found =
      Files("mnli")
          .With(
              "MNLI/dev_matched.tsv",
              "index\tlabel1\tsentence1\tgold_label\tsentence2\n9\tneutral\tp\tcontradiction\th\n")
          .Read("validation_matched");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].inputs, "mnli hypothesis: h premise: p");
  EXPECT_EQ(found[0].targets, "contradiction");
  EXPECT_EQ(found[0].id, "9");
}

TEST(TaskFiles, RowsWithoutAgreementAreNoExamples) {
  const std::string header = "sentence1\tsentence2\tgold_label\n";
  const auto found = Files("mnli")
                         .With("MNLI/dev_matched.tsv", header + "p\th\t-\np\th\tneutral\n")
                         .Read("validation_matched");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].targets, "neutral");
}

TEST(TaskFiles, BadRowsAreNamedWithPlaceAndReason) {
  const auto fault = [](const std::string& kind, const std::string& file,
                        const std::string& content) {
    return Files(kind).With(file, content).Fault();
  };
  const std::string qqp = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n1\t2\t3\ta\tb\t1\n";
  ExpectHas(fault("qqp", "QQP/dev.tsv", qqp + "4\t5\t6\ta\n"),
            {"QQP/dev.tsv", "line 3", "4 fields for 6 columns"});
  ExpectHas(fault("qqp", "QQP/dev.tsv", qqp + "4\t5\t6\ta\tb\t2\n"),
            {"line 3", "is_duplicate is \"2\"; must be 0 or 1"});
  ExpectHas(fault("cola", "CoLA/dev.tsv", "x\t1\t\ta\nx\t1\ta\n"),
            {"line 2", "3 fields for 4 columns"});
  ExpectHas(fault("stsb", "STS-B/dev.tsv", "index\tsentence1\tsentence2\tscore\n0\ta\tb\t5.5\n"),
            {"line 2", "score is \"5.5\"; must be from 0 to 5"});
  ExpectHas(
      fault("rte", "RTE/dev.tsv", "index\tsentence1\tsentence2\tlabel\n0\ta\t\xFF\tentailment\n"),
      {"line 2", "not well-formed UTF-8"});
  ExpectHas(fault("rte", "RTE/dev.tsv", "index\tsentence1\tlabel\n"),
            {"no column \"sentence2\"", "\"index\", \"sentence1\", \"label\""});
  ExpectHas(fault("boolq", "BoolQ/val.jsonl",
                  "{\"passage\":\"p\",\"question\":\"q\",\"label\":true}\n{\"passage\":\"p\"\n"),
            {"line 2", "cannot be read as JSON"});
  ExpectHas(fault("boolq", "BoolQ/val.jsonl", "{\"passage\":\"p\",\"label\":true}\n"),
            {"line 1", "a field is missing", "\"question\""});
  ExpectHas(
      fault("boolq", "BoolQ/val.jsonl", "{\"passage\":\"p\",\"question\":\"q\",\"label\":null}\n"),
      {"a field is missing", "\"label\""});
  ExpectHas(fault("copa", "COPA/val.jsonl",
                  R"({"premise":"p","choice1":"a","choice2":"b","question":"cause","label":2})"),
            {"label is \"2\""});
}

// As exports of TensorFlow Datasets and Hugging Face write it. Elsewhere it is a fault.
TEST(TaskFiles, APlaceholderForALabelIsNone) {
  struct Table {
    const char *task, *folder, *extension;
    std::string before, after;  // what is before and after the label
  };
  const std::string answer =
      R"({"idx":0,"passage":{"text":"t","questions":[{"question":"q","idx":0,"answers":[)"
      R"({"text":"a","idx":0,"label":)";
  const Table tables[] = {
      {"multirc", "MultiRC", "jsonl", answer, "}]}]}}\n"},
      {"boolq", "BoolQ", "jsonl", R"({"passage":"p","question":"q","label":)", "}\n"},
      {"wsc", "WSC", "jsonl",
       R"({"text":"Ann ran as she could","target":{"span1_text":"Ann","span1_index":0,)"
       R"("span2_text":"she","span2_index":3},"label":)",
       "}\n"},
      {"stsb", "STS-B", "tsv", "index\tsentence1\tsentence2\tscore\n0\ta\tb\t", "\n"},
      {"wnli_as_wsc", "WNLI", "tsv",
       "index\tsentence1\tsentence2\tlabel\n0\tAnn ran as she could.\tAnn could.\t", "\n"},
  };
  for (const Table& table : tables) {
    SCOPED_TRACE(table.task);
    const bool is_tsv = std::string(table.extension) == "tsv";
    const auto files = [&](const std::string& split, const std::string& label) {
      return Files(table.task)
          .With(fmt::format("{}/{}.{}", table.folder, split, table.extension),
                table.before + label + table.after);
    };
    for (const char* label : {"-1", is_tsv ? "" : "\"\"", is_tsv ? "-1.0" : "\"-1\""}) {
      const auto test = files("test", label).Read("test");
      ASSERT_EQ(test.size(), 1u) << label;
      EXPECT_EQ(test[0].expected, -1) << label;
    }
    ExpectHas(files(is_tsv ? "dev" : "val", "-1").Fault(), {" is \"-1\"; must be "});
  }
}

// Rows that are only partly good give no example.
TEST(TaskFiles, BadPartsOfNestedRows) {
  const auto multirc = [](const std::string& answers) {
    return Files("multirc").With(
        "MultiRC/val.jsonl",
        R"({"idx":0,"passage":{"text":"t","questions":[{"question":"q","idx":0,"answers":[{"text":"a","idx":0,"label":1},)" +
            answers + "]}]}}\n");
  };
  EXPECT_EQ(multirc(R"({"text":"b","idx":1,"label":0})").Read().size(), 2u);
  ExpectHas(multirc(R"({"text":"b","idx":1,"label":7})").Fault(), {"line 1", "label is \"7\""});
  ExpectHas(multirc(R"({"text":"b","idx":1})").Fault(), {"there is no \"label\""});
  ExpectHas(multirc(R"({"text":3,"idx":1,"label":1})").Fault(), {"\"text\" is not a string"});
  const auto record = [](const std::string& entities, const std::string& answers) {
    return Files("record").With(
        "ReCoRD/val.jsonl", R"({"idx":0,"passage":{"text":"Zoé ran","entities":)" + entities +
                                R"(},"qas":[{"query":"q","idx":5,"answers":)" + answers + "}]}\n");
  };
  const std::string answer = R"([{"text":"Zoé"}])";
  EXPECT_EQ(record(R"([{"start":0,"end":2}])", answer).Read()[0].inputs,
            "record query: q entities: Zoé passage: Zoé ran");
  ExpectHas(record(R"([{"start":0,"end":7}])", answer).Fault(),
            {"the entity from 0 to 7 is not in the passage of 7 characters"});
  ExpectHas(record(R"([{"start":3,"end":2}])", answer).Fault(), {"the entity from 3 to 2"});
  ExpectHas(record("[]", "[]").Fault(), {"a query has no answers"});
  ExpectHas(record("7", answer).Fault(), {"\"entities\" is not a list"});
  const auto wsc = [](const std::string& target) {
    return Files("wsc").With(
        "WSC/val.jsonl",
        "{\"text\":\"Bob saw Tom as he left\",\"idx\":0,\"label\":true,\"target\":" + target +
            "}\n");
  };
  ExpectHas(
      wsc(R"({"span1_text":"Tom","span1_index":2,"span2_text":"she","span2_index":4})").Fault(),
      {"word 4 of the text is not \"she\""});
  // It only begins a longer word.
  ExpectHas(
      wsc(R"({"span1_text":"Tom","span1_index":2,"span2_text":"le","span2_index":5})").Fault(),
      {"word 5 of the text is not \"le\""});
  ExpectHas(wsc(R"({"span1_text":"Tom","span1_index":2,"span2_text":"","span2_index":0})").Fault(),
            {"word 0"});
  ExpectHas(
      wsc(R"({"span1_text":"Tom","span1_index":2,"span2_text":"he","span2_index":9223372036854775807})")
          .Fault(),
      {"word 9223372036854775807"});
  ExpectHas(
      wsc(R"({"span1_text":"Tom","span1_index":2,"span2_text":"he","span2_index":-99})").Fault(),
      {"word -99"});
  ExpectHas(wsc(R"({"span1_text":"Tom","span1_index":2,"span2_text":"he"})").Fault(),
            {"target.span2_index"});
  ExpectHas(Files("wsc")
                .With("WSC/train.jsonl", "")
                .With("DPR/train.c.txt", "He ran, he said.\nhe\nBob,Tom\nJim\n")
                .Fault("train"),
            {"DPR/train.c.txt", "line 1", "not one of the two candidates"});
}

TEST(TaskFiles, AShareOfBadRowsIsLet) {
  std::string content = "sentence\tlabel\n";
  for (int i = 0; i < 20; ++i) content += i % 10 == 0 ? "a\n" : "a\t1\n";
  const Files files = Files("sst2").With("SST-2/dev.tsv", content);
  EXPECT_EQ(files.ReadWith(0.1).size(), 18u);
  ExpectHas(DataErrorOf([&] { files.ReadWith(0.05); }),
            {"2 of 20 records are bad", "data.max_bad_fraction"});
}

// Half of the rows are no rare mistake.
TEST(TaskFiles, OneBadRowOfTwoIsAnError) {
  const Files files = Files("sst2").With("SST-2/dev.tsv", "sentence\tlabel\na\t1\nb\tgood\n");
  ExpectHas(DataErrorOf([&] { files.ReadWith(0.0001); }),
            {"1 of 2 records are bad", "label is \"good\"; must be 0 or 1"});
}

TEST(TaskFiles, RowsThatAreLeftOutAreCounted) {
  const Path directory = ScratchDirectory("left_out");
  const auto left_out = [&](const std::string& kind, const std::string& file,
                            const std::string& content) {
    CreateDirectories((directory / file).parent_path());
    WriteScratch(directory / file, content);
    const std::unique_ptr<Task> task = TaskOf(kind + " {}");
    int64_t count = -1;
    ReadSplit(*task, SplitOf(*task, "test"),
              {.directory = directory, .policy = {.fail = false, .max_fraction = 1}}, &count);
    return count;
  };
  EXPECT_EQ(left_out("cola", "CoLA/test.tsv", "index\tsentence\n0\ta\n1\tb\n"), 0);
  EXPECT_EQ(left_out("cola", "CoLA/test.tsv", "index\tsentence\n0\ta\n1\n2\n"), 2);
  EXPECT_EQ(left_out("stsb", "STS-B/test.tsv", "index\tsentence1\tsentence2\n0\ta\tb\n1\n"), 1);
  EXPECT_EQ(left_out("boolq", "BoolQ/test.jsonl", "{\"passage\":\"p\",\"question\":\"q\"}\n{}\n"),
            1);
}

TEST(TaskFiles, AnEmptySplitIsAnError) {
  ExpectHas(Files("cola").With("CoLA/dev.tsv", "").Fault(),
            {"CoLA/dev.tsv", "there is no example in it"});
  ExpectHas(Files("sst2").With("SST-2/dev.tsv", "").Fault(), {"it is empty"});
}

TEST(TaskFiles, TestSplitsNeedNoLabels) {
  const auto found = Files("cola").With("CoLA/test.tsv", "index\tsentence\n12\ta b\n").Read("test");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].targets, "<unk>");
  EXPECT_EQ(found[0].expected, -1);
  EXPECT_EQ(found[0].id, "12");
}

TEST(TaskFiles, MrpcInBothLayouts) {
  const std::unique_ptr<Task> task = TaskOf("mrpc {}");
  const Path microsoft = TaskSample() / "MRPC_microsoft";
  const auto texts = [](std::vector<TaskExample> examples) {
    std::vector<std::string> inputs;
    for (TaskExample& example : examples) inputs.push_back(std::move(example.inputs));
    return inputs;
  };
  const auto tables = texts(Read(*task, "train")), split = texts(Read(*task, "train", microsoft));
  ASSERT_EQ(split.size(), 6u);
  EXPECT_TRUE(std::ranges::equal(split, std::span(tables).first(6)));
  EXPECT_EQ(texts(Read(*task, "validation", microsoft)), texts(Read(*task, "validation")));
}

}  // namespace
}  // namespace syntra
