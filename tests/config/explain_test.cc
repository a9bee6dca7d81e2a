// SPDX-License-Identifier: Apache-2.0
// `config explain`: every field has a comment, and lists fit a screen.
#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <set>

#include "base/text.h"
#include "config/comments.h"
#include "config/explain.h"
#include "configs/schema/config.pb.h"

namespace syntra {
namespace {

using google::protobuf::Descriptor;

void ForEachMessage(const Descriptor& message,
                    const std::function<void(const Descriptor&)>& visit) {
  visit(message);
  for (int i = 0; i < message.field_count(); ++i) {
    if (message.field(i)->message_type()) ForEachMessage(*message.field(i)->message_type(), visit);
  }
}

TEST(Schema, EveryFieldAndValueHasAComment) {
  const SchemaComments comments;
  int fields = 0;
  ForEachMessage(*Config::descriptor(), [&](const Descriptor& message) {
    for (int i = 0; i < message.field_count(); ++i) {
      const auto& field = *message.field(i);
      EXPECT_NE(comments.Of(field), "") << field.full_name() << " has no comment";
      ++fields;
      for (int k = 0; field.enum_type() && k < field.enum_type()->value_count(); ++k) {
        EXPECT_NE(comments.Of(*field.enum_type()->value(k)), "")
            << field.enum_type()->value(k)->full_name() << " has no comment";
      }
    }
  });
  EXPECT_GT(fields, 100);
}

// In lower case, without punctuation.
std::set<std::string> Words(const std::string& text) {
  std::string plain;
  for (const unsigned char c : text)
    plain += static_cast<char>(std::isalnum(c) ? std::tolower(c) : ' ');
  const std::vector<std::string> words = Split(plain, ' ');
  std::set<std::string> different(words.begin(), words.end());
  different.erase("");
  return different;
}

// Explanations show both, one after the other: at least half of the words of a message's first
// sentence are new.
TEST(Schema, AMessageDoesNotRepeatWhatItsFieldSays) {
  const SchemaComments comments;
  ForEachMessage(*Config::descriptor(), [&](const Descriptor& message) {
    for (int i = 0; i < message.field_count(); ++i) {
      const auto& field = *message.field(i);
      if (!field.message_type()) continue;
      const std::string sentence = Split(comments.Of(*field.message_type()), '.').front();
      const std::set<std::string> own = Words(comments.Of(field)), of_type = Words(sentence);
      const auto again = std::ranges::count_if(
          of_type, [&](const std::string& word) { return own.contains(word); });
      EXPECT_LE(again * 2, std::ssize(of_type)) << field.full_name() << ": " << sentence;
    }
  });
}

void ExpectFits(const std::string& text) {
  for (const std::string& line : Split(text, '\n')) {
    EXPECT_LE(line.size(), 80u) << line;
    EXPECT_FALSE(line.ends_with(' ')) << line;
  }
}

TEST(Explain, AllFieldsInEightyColumns) {
  const std::string all = ExplainAll();
  ExpectFits(all);
  for (const FieldPlace& field : AllFields()) {
    // decoder_mixer's are listed once, at mixer.
    const std::string name = field.path.substr(field.path.rfind('.') + 1);
    EXPECT_NE(all.find(name), std::string::npos) << field.path;
  }
  EXPECT_NE(
      all.find("\n  width  int32 = 512                  Width of the residual stream (d_model).\n"),
      std::string::npos)
      << all;
  EXPECT_NE(all.find("Fields as in\n"), std::string::npos);
  EXPECT_NE(all.find("model.mixer."), std::string::npos);
}

TEST(Explain, ASubtree) {
  const std::string train = ExplainField("train");
  ExpectFits(train);
  EXPECT_TRUE(train.starts_with("train\n  type     message TrainConfig\n")) << train;
  EXPECT_NE(train.find("\n    steps  int64 = 524288 "), std::string::npos) << train;
  const std::string mixer = ExplainField("model.mixer");
  EXPECT_NE(mixer.find("\n          max_length  int32 = 512 "), std::string::npos) << mixer;
}

TEST(Explain, SynonymsAndWhatAContinuedRunDoes) {
  const std::string rate = ExplainField("lr");
  EXPECT_TRUE(rate.starts_with("optimizer.schedule.rate\n")) << rate;
  EXPECT_NE(
      rate.find("\n  Also known as: lr, learning_rate, max_lr, peak_lr, base_lr, step_size\n"),
      std::string::npos)
      << rate;
  // The option is that of the message around it.
  EXPECT_NE(
      rate.find("\n  Changing it when a run continues: allowed, and the log says what becomes of\n"
                "  the learning rate\n"),
      std::string::npos)
      << rate;
  for (const auto& [field, answer] :
       {std::pair("model.width", "refused, since it would be another run"),
        {"data.pack", "refused, since it would be another run"},
        {"train.log_every", "free, the training goes on as it was"},
        {"checkpoint.keep", "free, the training goes on as it was"}}) {
    const std::string text = ExplainField(field);
    EXPECT_NE(text.find(fmt::format("\n  Changing it when a run continues: {}\n", answer)),
              std::string::npos)
        << text;
  }
  const std::string threshold = ExplainField("optimizer.clip_threshold");
  EXPECT_EQ(threshold.find("Also known as"), std::string::npos) << threshold;
  EXPECT_EQ(ExplainField("train").find("Changing it"), std::string::npos);
}

// Beside the kinds there may be other fields.
TEST(Explain, KindsAreToldFromOtherFields) {
  const std::string term = ExplainField("model.mixer.attention.term");
  const size_t kinds = term.find("\n  one of\n"), fields = term.find("\n  fields\n");
  ASSERT_LT(fields, kinds) << term;
  ASSERT_NE(kinds, std::string::npos) << term;
  EXPECT_GT(term.find("\n    dot_product"), kinds) << term;
  EXPECT_LT(term.find("\n    name "), kinds) << term;
  EXPECT_EQ(ExplainField("train").find("\n  one of\n"), std::string::npos);
}

TEST(Explain, EveryFieldInEightyColumns) {
  for (const FieldPlace& field : AllFields()) ExpectFits(ExplainField(field.path));
}

}  // namespace
}  // namespace syntra
