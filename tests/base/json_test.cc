// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <gtest/gtest.h>

#include <limits>

namespace syntra {
namespace {

TEST(Json, KeepsTheOrderOfMembers) {
  EXPECT_EQ(JsonText(ParseJson(R"({"b": 1, "a": [true, null]})")), R"({"b":1,"a":[true,null]})");
}

TEST(Json, PrintsWhateverBytesAPathHolds) {
  EXPECT_EQ(JsonText({{"path", "a\xFF\"b"}}), "{\"path\":\"a\uFFFD\\\"b\"}");
}

TEST(Json, SaysWhereItIsWrong) {
  try {
    ParseJson("{\"a\": 1,\n \"b\"}");
    FAIL() << "took what is no JSON";
  } catch (const Json::exception& error) {
    EXPECT_NE(std::string(error.what()).find("line 2"), std::string::npos) << error.what();
  }
}

TEST(Json, BracketsAloneDoNotFillTheStack) {
  const auto nested = [](size_t levels) {
    return std::string(levels, '[') + R"("[[\"[")" + std::string(levels, ']');
  };
  EXPECT_EQ(JsonText(ParseJson(nested(64))), nested(64));
  EXPECT_THROW(ParseJson(nested(65)), Json::exception);
  EXPECT_THROW(ParseJson(std::string(1 << 20, '[')), Json::exception);
  EXPECT_EQ(JsonText(TryParseJson(nested(64))), nested(64));
  EXPECT_TRUE(TryParseJson(nested(65)).is_discarded());
  EXPECT_TRUE(TryParseJson("{").is_discarded());
}

TEST(Json, AnIntegerIsWhatFitsIntoOne) {
  const auto integer = [](const char* text) { return IntegerOf(ParseJson(text)); };
  EXPECT_EQ(integer("-9223372036854775808"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(integer("9223372036854775807"), std::numeric_limits<int64_t>::max());
  for (const char* other :
       {"9223372036854775808", "1e300", "1.0", "\"1\"", "null", "true", "[1]"}) {
    EXPECT_THROW(integer(other), Json::exception) << other;
  }
}

}  // namespace
}  // namespace syntra
