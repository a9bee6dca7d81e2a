// SPDX-License-Identifier: Apache-2.0
// MultiRC: which of the answers to a question about a passage are right? Each answer is an example.
#include "base/text.h"
#include "metrics/unicode_text.h"
#include "tasks/label_task.h"

namespace syntra {
namespace {

// The tags in passages, and the texts by which T5 replaces them.
constexpr std::pair<std::string_view, std::string_view> kTags[] = {
    {"<br>", " "}, {"<b>", ""}, {"</b>", ""}};

class MultiRc : public Task {
 public:
  MultiRc()
      : Task({.name = "multirc",
              .benchmark = "superglue",
              .splits = SuperGlueSplits("MultiRC"),
              .labels = {"False", "True"},
              .metrics = {"multirc"}}) {}

  int64_t Read(const TaskSplit& split, std::span<const Path> files, const BadRecordPolicy& policy,
               const Sink& sink) const override {
    return ReadRows(
        {files[0], kJsonLines, {{.name = "passage", .nested = true}, {"idx"}}}, policy,
        [&](const Row& row) { return Parse(row, split.use); }, sink);
  }

  // A line a passage, with its questions, with their answers.
  std::string Submission(std::span<const Prediction> predictions) const override {
    std::string lines;
    std::string passage, question;
    Json questions = Json::array();
    const auto finish = [&] {
      if (questions.empty()) return;
      lines += JsonText({{"idx", Number(passage)}, {"passage", {{"questions", questions}}}}) + "\n";
      questions = Json::array();
    };
    for (const Prediction& prediction : predictions) {
      const std::vector<std::string> id = Split(prediction.example.id, '/');
      if (id[0] != passage) finish();
      if (questions.empty() || id[1] != question) {
        questions.push_back({{"idx", Number(id[1])}, {"answers", Json::array()}});
      }
      passage = id[0], question = id[1];
      questions.back()["answers"].push_back(
          {{"idx", Number(id[2])}, {"label", SubmittedClass(prediction.text)}});
    }
    finish();
    return lines;
  }

 private:
  static int64_t Number(const std::string& text) {
    int64_t number = 0;
    SYNTRA_CHECK(ParseInt64(text, &number));
    return number;
  }

  // The label of an answer: a number, a truth value or a text.
  static std::optional<std::string> AnswerLabel(const Json& answer, TaskSplit::Use use) {
    if (use == TaskSplit::Use::kTest && !answer.contains("label")) return std::nullopt;
    const Json& label = JsonMember(answer, "label");
    return LabelOf(label.is_string() ? label.get<std::string>() : JsonText(label), use);
  }

  std::vector<TaskExample> Parse(const Row& row, TaskSplit::Use use) const {
    const Json passage = ParseJson(*row.fields[0]);
    const std::string text = JsonString(passage, "text");
    int64_t index = 0;
    if (!ParseInt64(*row.fields[1], &index)) {
      throw BadRow{fmt::format("\"idx\" is {}; must be an integer", Printable(*row.fields[1], 40))};
    }
    std::vector<TaskExample> examples;
    for (const Json& question : JsonArray(passage, "questions")) {
      for (const Json& answer : JsonArray(question, "answers")) {
        TaskExample example;
        example.inputs =
            fmt::format("multirc question: {} answer: {} paragraph: {}",
                        JsonString(question, "question"), JsonString(answer, "text"), text);
        for (const auto& [tag, replacement] : kTags) {
          example.inputs = Replaced(example.inputs, tag, replacement);
        }
        example.targets = kNoTarget;
        if (const auto label = AnswerLabel(answer, use)) {
          const std::string values[] = {"0", "1", "false", "true"};
          example.expected = IndexOf(*label, values, "label") % 2;
          example.targets = traits().labels[static_cast<size_t>(example.expected)];
        }
        example.group = fmt::format("{}/{}", index, JsonInteger(question, "idx"));
        example.id = fmt::format("{}/{}", example.group, JsonInteger(answer, "idx"));
        examples.push_back(std::move(example));
      }
    }
    return examples;
  }
};

}  // namespace

std::unique_ptr<Task> task_multirc(const TaskConfig& /*config*/) {
  return std::make_unique<MultiRc>();
}

}  // namespace syntra
