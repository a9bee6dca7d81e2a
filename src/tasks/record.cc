// SPDX-License-Identifier: Apache-2.0
// ReCoRD: which entity of a passage belongs in the gap of a query? Training has an example for each
// answer that a query lists; evaluation one for each query, for which any of them is right.
#include <set>

#include "base/text.h"
#include "base/utf8.h"
#include "tasks/label_task.h"

namespace syntra {
namespace {

// Entities and answers are in the order of their bytes, as TensorFlow Datasets sorts them.
using Names = std::set<std::string>;

// Where each character begins, and the end: the file counts characters.
std::vector<size_t> CharacterPlaces(std::string_view text) {
  std::vector<size_t> places;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!ContinuesCharacter(text[i])) places.push_back(i);
  }
  places.push_back(text.size());
  return places;
}

Names EntitiesOf(const Json& passage, std::string_view text) {
  const std::vector<size_t> places = CharacterPlaces(text);
  const auto length = static_cast<int64_t>(places.size()) - 1;
  Names entities;
  for (const Json& entity : JsonArray(passage, "entities")) {
    const int64_t start = JsonInteger(entity, "start"), last = JsonInteger(entity, "end");
    if (start < 0 || last < start || last >= length) {
      throw BadRow{fmt::format("the entity from {} to {} is not in the passage of {} characters",
                               start, last, length)};
    }
    entities.emplace(text.substr(places[start], places[last + 1] - places[start]));
  }
  return entities;
}

Names AnswersOf(const Json& query) {
  Names answers;
  if (!query.contains("answers")) return answers;
  for (const Json& answer : JsonArray(query, "answers")) answers.insert(JsonString(answer, "text"));
  return answers;
}

// The passage's summary sentences, each after a line "@highlight", become part of its text.
std::string JoinHighlights(std::string_view text) {
  constexpr std::string_view kMark = "\n@highlight\n", kEnds = ".?!\"'";
  std::string joined;
  while (true) {
    const size_t at = text.find(kMark);
    joined += text.substr(0, at);
    if (at == std::string_view::npos) return joined;
    joined += at > 0 && kEnds.find(text[at - 1]) != std::string_view::npos ? " " : ". ";
    text.remove_prefix(at + kMark.size());
  }
}

class ReCoRd : public Task {
 public:
  ReCoRd()
      : Task({.name = "record",
              .benchmark = "superglue",
              .splits = SuperGlueSplits("ReCoRD"),
              .labels = {},
              .metrics = {"squad"}}) {}

  int64_t Read(const TaskSplit& split, std::span<const Path> files, const BadRecordPolicy& policy,
               const Sink& sink) const override {
    return ReadRows(
        {files[0],
         kJsonLines,
         {{.name = "passage", .nested = true}, {.name = "qas", .nested = true}, {"idx"}}},
        policy, [&](const Row& row) { return Parse(row, split.use); }, sink);
  }

 private:
  static std::vector<TaskExample> Parse(const Row& row, TaskSplit::Use use) {
    const Json passage = ParseJson(*row.fields[0]), queries = ParseJson(*row.fields[1]);
    if (!queries.is_array()) throw BadRow{"\"qas\" is not a list"};
    const std::string text = JsonString(passage, "text");
    const Names entities = EntitiesOf(passage, text);
    const std::string known = Join(std::vector(entities.begin(), entities.end()), ", ");
    const std::string joined = JoinHighlights(text);
    std::vector<TaskExample> examples;
    for (const Json& query : queries) {
      const Names answers = AnswersOf(query);
      if (answers.empty() && use != TaskSplit::Use::kTest) throw BadRow{"a query has no answers"};
      TaskExample example;
      example.inputs = fmt::format("record query: {} entities: {} passage: {}",
                                   JsonString(query, "query"), known, joined);
      example.accepted_texts.assign(answers.begin(), answers.end());
      example.id = std::to_string(JsonInteger(query, "idx"));
      example.group = fmt::format("{}/{}", *row.fields[2], example.id);
      example.targets = answers.empty() ? std::string(kNoTarget) : *answers.begin();
      if (use != TaskSplit::Use::kTrain) {
        examples.push_back(std::move(example));
        continue;
      }
      for (const std::string& answer : answers) {
        example.targets = answer;
        examples.push_back(example);
      }
    }
    return examples;
  }
};

}  // namespace

std::unique_ptr<Task> task_record(const TaskConfig& /*config*/) {
  return std::make_unique<ReCoRd>();
}

}  // namespace syntra
