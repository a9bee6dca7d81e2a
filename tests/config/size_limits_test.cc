// SPDX-License-Identifier: Apache-2.0
// Models that are too large for any machine are refused before anything is built. The error names
// the fields that determine the size.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "errors.h"

namespace syntra {
namespace {

using testing::HasSubstr;

std::string Errors(const std::string& text) { return Join(ErrorLines(text), "\n"); }

TEST(SizeLimits, OfOneField) {
  EXPECT_THAT(Errors("model { width: 2147483647 }"),
              HasSubstr("model.width: 2147483647 is not allowed; must be greater than 0, at most "
                        "65536"));
  EXPECT_THAT(Errors("model { encoder_layers: 10000 }"), HasSubstr("at most 256"));
  EXPECT_THAT(Errors("model { cross_attention { heads: 65536 head_size: 65536 } }"),
              HasSubstr("model.cross_attention.heads: 65536 is not allowed"));
  EXPECT_THAT(
      Errors("model { mixer { attention { term { random { max_length: 2147483647 } } } } }"),
      HasSubstr("random.max_length: 2147483647 is not allowed"));
  EXPECT_THAT(Errors("train { batch_size: 2147483647 }"), HasSubstr("at most 1048576"));
}

TEST(SizeLimits, OfTokens) {
  EXPECT_THAT(Errors("data { input_length: 1600 } train { batch_size: 1048576 }"),
              HasSubstr("error: x:1:37: train.batch_size 1048576 of data.input_length 1600 gives "
                        "1,677,721,600 tokens; at most 1,073,741,824 are allowed"));
  EXPECT_THAT(Errors("evaluation { batch_size: 1048576 } data { input_length: 1600 }"),
              HasSubstr("evaluation.batch_size 1048576 of data.input_length 1600"));
}

TEST(SizeLimits, OfActivations) {
  const std::string wide =
      "model { width: 65536 mixer { attention { heads: 4096 head_size: 65536 } } } ";
  EXPECT_THAT(Errors(wide + "train { batch_size: 1024 }"),
              HasSubstr("train.batch_size 1024 of data.input_length 512 in 12 layers "
                        "with 268,435,456 elements a token "
                        "(model.mixer.attention.heads, "
                        "model.mixer.attention.head_size) are more than 2^50 "
                        "values; lower one of them"));
  EXPECT_EQ(Errors(wide + "train { micro_batch_size: 1 }"), "");
}

}  // namespace
}  // namespace syntra
