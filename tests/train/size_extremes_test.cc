// SPDX-License-Identifier: Apache-2.0
// Extreme values of every integer field, alone and in pairs: either the configuration is refused
// with exit code 2, or its sizes are computed quickly and correctly. Nothing crashes.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/error.h"
#include "config/config.h"
#include "plan/training_plan.h"

namespace syntra {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Every kind of term, so that each of their fields counts.
constexpr const char* kBase = R"(
  model {
    width: 16 encoder_layers: 1 decoder_layers: 1 vocabulary_size: 256
    feed_forward { width: 16 }
    mixer {
      attention {
        heads: 2 head_size: 8
        term { random { max_length: 64 } }
        term { factorized_random { max_length: 64 rank: 4 } }
        term { dense { max_length: 64 share_query: false } }
        term { factorized_dense { a: 8 b: 8 share_query: false } }
        term { dot_product {} }
      }
    }
    cross_attention { heads: 2 head_size: 8 }
  }
  data { input_length: 32 extra_ids: 16 }
  optimizer { kind: ADAMW }
  train { batch_size: 4 }
)";

// An integer field somewhere in a message, as a way to it: fields and indices.
struct Place {
  std::vector<std::pair<const FieldDescriptor*, int>> way;
  const FieldDescriptor* field;
};

void Collect(const Message& message, const Place& outer, std::vector<Place>* places) {
  const auto& reflection = *message.GetReflection();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message.GetDescriptor()->field(i);
    Place place = outer;
    if (!field->message_type()) {
      place.field = field;
      const auto type = field->cpp_type();
      if (type == FieldDescriptor::CPPTYPE_INT32 || type == FieldDescriptor::CPPTYPE_INT64) {
        places->push_back(place);
      }
    } else if (field->is_repeated()) {
      for (int k = 0; k < reflection.FieldSize(message, field); ++k) {
        place.way = outer.way;
        place.way.emplace_back(field, k);
        Collect(reflection.GetRepeatedMessage(message, field, k), place, places);
      }
    } else if (reflection.HasField(message, field) || !field->containing_oneof()) {
      place.way.emplace_back(field, 0);
      Collect(reflection.GetMessage(message, field), place, places);
    }
  }
}

void Set(Message* message, const Place& place, int64_t value) {
  for (const auto& [field, index] : place.way) {
    const auto& reflection = *message->GetReflection();
    message = field->is_repeated() ? reflection.MutableRepeatedMessage(message, field, index)
                                   : reflection.MutableMessage(message, field);
  }
  if (place.field->cpp_type() == FieldDescriptor::CPPTYPE_INT64) {
    message->GetReflection()->SetInt64(message, place.field, value);
  } else {
    message->GetReflection()->SetInt32(message, place.field, static_cast<int32_t>(value));
  }
}

Config Base() {
  Config config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kBase, &config));
  return config;
}

std::vector<Place> AllPlaces() {
  std::vector<Place> places;
  Collect(Base(), {}, &places);
  return places;
}

// The largest that the field's rule allows, and values around powers of two and primes.
std::vector<int64_t> Extremes(const FieldDescriptor& field) {
  const Rule& rule = field.options().GetExtension(syntra::rule);
  const bool wide = field.cpp_type() == FieldDescriptor::CPPTYPE_INT64;
  const int64_t type_max = wide ? INT64_MAX : INT32_MAX;
  const int64_t max = rule.has_max() ? static_cast<int64_t>(rule.max()) : type_max;
  return {INT32_MIN, -1, 0, 1, 65536, 1048573, max, INT32_MAX, type_max};
}

// Of the processor, to find sizes that take minutes. The largest plan takes half a second, and
// twice as long where a neighbour shares the core.
#if defined(__SANITIZE_ADDRESS__)
constexpr std::clock_t kMostTime = 50 * CLOCKS_PER_SEC;
#else
constexpr std::clock_t kMostTime = 5 * CLOCKS_PER_SEC;
#endif

int planned = 0;

void ExpectSizesOrRefusal(const Config& config) {
  const std::clock_t start = std::clock();  // of the processor: others may keep the machine busy
  try {
    ValidateConfig(config, kForModel);
    const auto plan = TrainingPlan::Make(config);
    const MemoryNeeds& memory = plan->memory();
    ++planned;
    EXPECT_GT(plan->parameters().element_count(), 0) << config.ShortDebugString();
    EXPECT_GE(memory.parameters, 4.0 * static_cast<double>(plan->parameters().element_count()));
    EXPECT_GT(memory.training, 0) << config.ShortDebugString();
    EXPECT_TRUE(std::isfinite(plan->flops_per_step()) && plan->flops_per_step() > 0);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kConfig) << error.what() << config.ShortDebugString();
  }
  EXPECT_LT(std::clock() - start, kMostTime) << config.ShortDebugString();
}

TEST(SizeExtremes, OfEachFieldAlone) {
  const auto places = AllPlaces();
  EXPECT_GT(places.size(), 35u);
  planned = 0;
  for (const Place& place : places) {
    for (const int64_t value : Extremes(*place.field)) {
      Config config = Base();
      Set(&config, place, value);
      ExpectSizesOrRefusal(config);
    }
  }
  EXPECT_GT(planned, 100);
}

TEST(SizeExtremes, OfPairs) {
  const auto places = AllPlaces();
  std::mt19937 random(20251122);
  planned = 0;
  for (int i = 0; i < 300; ++i) {
    Config config = Base();
    for (int k = 0; k < 2; ++k) {
      const Place& place = places[random() % places.size()];
      const auto values = Extremes(*place.field);
      // Negative numbers are refused before they meet another.
      Set(&config, place, values[2 + random() % (values.size() - 2)]);
    }
    ExpectSizesOrRefusal(config);
  }
  EXPECT_GT(planned, 50);
}

// Configurations that crashed, hung or gave negative numbers when fields had only the limits of
// their types.
TEST(SizeExtremes, OfProducts) {
  const auto with = [](const std::string& text) {
    Config config = Base(), more;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &more));
    config.MergeFrom(more);
    ExpectSizesOrRefusal(config);
  };
  with("model { cross_attention { heads: 65536 head_size: 65536 } }");
  with("model { cross_attention { heads: 2147483647 head_size: 2147483647 } }");
  with("model { width: 2147483647 vocabulary_size: 2147483646 }");
  with("model { width: 65536 vocabulary_size: 16777216 feed_forward { width: 1048576 } }");
  with("train { batch_size: 2147483647 }");
  with("train { batch_size: 1048573 } data { input_length: 1021 }");
  with("model { encoder_layers: 10000 decoder_layers: 10000 }");
  with("train { batch_size: 1048576 micro_batch_size: 1 reduction: EXACT }");
}

}  // namespace
}  // namespace syntra
