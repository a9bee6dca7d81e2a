// SPDX-License-Identifier: Apache-2.0
// The commands of `tokenizer`.
#include "tests/e2e/tiny_run.h"

namespace syntra {
namespace {

class TokenizerCommands : public TinyRun {};

TEST_F(TokenizerCommands, RoundTrip) {
  const std::string text = "aa ba cd\n\nzc aa <extra_id_3> ba\n";
  const Arguments model{"--model", tokenizer_.string(), "--extra-ids", "20"};
  Arguments encode{"tokenizer", "encode", "--sentinels"}, decode{"tokenizer", "decode"};
  encode.insert(encode.end(), model.begin(), model.end());
  decode.insert(decode.end(), model.begin(), model.end());
  const Outcome ids = Run(encode, {.input = text});
  EXPECT_EQ(ids.code, 0) << ids.err;
  // 99 pieces; sentinel k has the id 118 - k.
  EXPECT_NE(ids.out.find(" 115 "), std::string::npos) << ids.out;
  EXPECT_EQ(Run(decode, {.input = ids.out}).out, text);
  EXPECT_EQ(Run(decode, {.input = "3\t 4 5\r\n"}).out, Run(decode, {.input = "3 4 5\n"}).out);
  const Outcome wrong = Run(decode, {.input = "3 4\nfive\n"});
  EXPECT_EQ(wrong.code, 3);
  EXPECT_TRUE(wrong.Says("line 2 of the input: \"five\" is not a token id")) << wrong.err;
  EXPECT_EQ(Run(decode, {.input = "118\n"}).code, 0);
  const Outcome beyond = Run(decode, {.input = "119\n"});
  EXPECT_EQ(beyond.code, 3);
  EXPECT_TRUE(beyond.Says("\"119\" is not a token id")) << beyond.err;
  EXPECT_TRUE(beyond.Says("are from 0 to 118")) << beyond.err;
}

TEST_F(TokenizerCommands, LinesThatAreNoTextAreRefused) {
  const Arguments encode{"tokenizer", "encode", tokenizer_.string()};
  const std::string nul = "aa" + std::string(1, '\0') + "\n";
  const Outcome outcome = Run(encode, {.input = "aa \xff\n" + nul + "ba\n"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_TRUE(
      outcome.Says("error: line 1 of the input is bad: text is not well-formed UTF-8; an empty "
                   "line takes its place"))
      << outcome.err;
  EXPECT_TRUE(outcome.Says("error: line 2 of the input is bad: text contains a NUL character"))
      << outcome.err;
  EXPECT_EQ(outcome.out, "\n\n" + Run(encode, {.input = "ba\n"}).out);
}

// A program that asks again once it has an answer.
TEST_F(TokenizerCommands, EachLineIsAnsweredWhenItComes) {
  const std::string asks = R"(
    coproc "$@"
    for line in "$0" 3 4; do
      echo "$line" >&"${COPROC[1]}"
      read -r -t 20 answer <&"${COPROC[0]}" || break
      echo "$answer"
    done)";
  const auto answers = [&](const char* command, const std::string& first) {
    const Arguments words{"tokenizer", command, tokenizer_.string()};
    const std::string input = first + "\n3\n4\n";
    const Outcome outcome = Run(words, {.wrapper = {"bash", "-c", asks, first}});
    EXPECT_EQ(outcome.out, Run(words, {.input = input}).out) << outcome.err;
  };
  answers("encode", "aa ba");
  answers("decode", "5");
}

TEST_F(TokenizerCommands, AModelIsTrainedAndUsed) {
  const Path model = scratch_ / "own.model";
  const Arguments train{"tokenizer",      "train", "--config",
                        config_.string(), "--set", "data.tokenizer=" + model.string()};
  const auto with = [&](const Arguments& options) {
    Arguments all = train;
    all.insert(all.end(), options.begin(), options.end());
    return Run(all);
  };
  const Outcome too_many = with({"--pieces", "90000"});
  EXPECT_EQ(too_many.code, 2);
  EXPECT_TRUE(too_many.Says("cannot train a tokenizer of 90000 pieces")) << too_many.err;
  EXPECT_FALSE(std::filesystem::exists(model));
  const Outcome nowhere = with({"--output", (scratch_ / "none/own.model").string()});
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_TRUE(nowhere.Says("own.model: there is no directory")) << nowhere.err;
  const Outcome trained = with({"--pieces", "40"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_NE(trained.out.find("pieces           40"), std::string::npos) << trained.out;
  const std::string content = ReadWholeFile(model);
  const Outcome again = with({"--pieces", "50"});
  EXPECT_EQ(again.code, 2);
  EXPECT_TRUE(again.Says("own.model exists")) << again.err;
  EXPECT_EQ(ReadWholeFile(model), content);
  Train("run", {"train.steps=4", "data.tokenizer=" + model.string()});
}

// SentencePiece's trainer puts the unknown piece at 0 unless it is told otherwise.
TEST_F(TokenizerCommands, UnknownCharactersAreKeptWherePieceZeroIsUnknown) {
  WriteSentencePieceModel(tokenizer_, 90, {"<unk>", "<s>", "</s>"});
  const Arguments model{"--model", tokenizer_.string(), "--extra-ids", "20"};
  Arguments encode{"tokenizer", "encode"}, decode{"tokenizer", "decode"}, info{"tokenizer", "info"};
  for (Arguments* arguments : {&encode, &decode, &info}) {
    arguments->insert(arguments->end(), model.begin(), model.end());
  }
  const Outcome ids = Run(encode, {.input = "aa \u2603 ba\n"});
  EXPECT_EQ(ids.out, "4 1 5\n");
  EXPECT_NE(Run(decode, {.input = ids.out}).out.find(" \u2047 "), std::string::npos);
  const std::string facts = Run(info).out;
  for (const char* fact : {"vocabulary       114", "number + 1", "unknown          1 <unk>",
                           "3 </s>", "SentencePiece    "}) {
    EXPECT_NE(facts.find(fact), std::string::npos) << facts;
  }
  ReplaceFileDurably(training_, "{\"text\": \"aa \u2603 ba ca aa ba \u2603 ca aa da\"}\n");
  ReplaceFileDurably(validation_, ReadWholeFile(training_));
  const Outcome examples = Run({"inspect", "data", "--config", config_.string(), "--set",
                                "train.directory=" + Directory("run").string()});
  EXPECT_EQ(examples.code, 0) << examples.err;
  EXPECT_NE(examples.out.find("\u2047"), std::string::npos) << examples.out;
  Train("run", {"train.steps=4"});
}

}  // namespace
}  // namespace syntra
