// SPDX-License-Identifier: Apache-2.0
// A small model whose plans are tested.
#pragma once

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "configs/schema/config.pb.h"

namespace syntra {

inline Config SmallModel() {
  Config config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "model { width: 256 encoder_layers: 6 decoder_layers: 6 feed_forward { width: 1024 } "
      "mixer { attention { heads: 4 } } cross_attention { heads: 4 } vocabulary_size: 32128 } "
      "data { input_length: 64 } optimizer { kind: ADAMW } train { batch_size: 16 }",
      &config));
  return config;
}

}  // namespace syntra
