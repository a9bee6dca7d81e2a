// SPDX-License-Identifier: Apache-2.0
// Settings that are fine one by one but not together.
#include <gtest/gtest.h>

#include "errors.h"

namespace syntra {
namespace {

struct Case {
  const char* text;
  const char* error;  // a part of the only error; "" if accepted
};

std::string Attention(const std::string& fields) {
  return "model { mixer { attention { " + fields + " } } }";
}

void Expect(const std::string& text, const std::string& error) {
  const auto lines = ErrorLines(text);
  if (error.empty()) {
    EXPECT_TRUE(lines.empty()) << text << "\n" << Join(lines, "\n");
    return;
  }
  ASSERT_EQ(lines.size(), 2u) << text << "\n" << Join(lines, "\n");
  EXPECT_TRUE(lines[0].starts_with("error: x:1:")) << lines[0];
  EXPECT_NE(lines[0].find(error), std::string::npos) << lines[0];
}

TEST(Combinations, Attention) {
  const Case cases[] = {
      {"gate: SIGMOID term { random {} }", "SIGMOID weighs exactly two terms, but there is 1"},
      {"gate: SIGMOID term { random {} } term { dense {} }", ""},
      {"gate: SIGMOID initial_alpha: 5 term { random {} } term { dot_product {} }", ""},
      {"gate: SOFTMAX initial_alpha: 5 term { random {} } term { dot_product {} }",
       "initial_alpha has no effect with gate SOFTMAX; set gate: SIGMOID"},
      {"gate: SOFTMAX term { random {} } term { dense {} } term { dot_product {} }", ""},
      {"term { dot_product {} } term { dot_product {} }", "term[1] is a second dot_product"},
      {"term { random {} } term { random {} }",
       "term[1] and term[0] would both be called \"random\"; give it another name, e.g. name: "
       "\"random_2\""},
      {"term { random {} } term { name: 'other' random {} }", ""},
      {"term { random {} } term { name: 'random' dense {} }", "would both be called \"random\""},
      {"term { dense {} } term { name: 'other' dense {} }",
       "term[1] is a second dense, but attention takes one; remove it, or add heads"},
      {"term { factorized_dense {} } term { name: 'other' factorized_dense {} }",
       "term[1] is a second factorized_dense"},
      {"term { name: 'value' random {} }",
       "term[0].name value is the name of a parameter of the mixture"},
      {"term { name: 'a/b' random {} }", "term[0].name must be a word of lowercase letters"},
      {"relative_bias: false term { dot_product {} } term { relative_bias {} }", ""},
      {"term { dot_product {} } term { relative_bias {} }",
       "term[1].relative_bias and the stack's relative bias are both added; set "
       "model.mixer.attention.relative_bias: false, or remove the term"},
      {"relative_bias: false term { relative_bias { buckets: 7 } }",
       "term[0].relative_bias.buckets 7 must be even"},
      {"term {}", "term[0] names no kind"},
      {"term { random { max_length: 511 } }",
       "model.mixer.attention.term[0].random.max_length 511 is shorter than data.input_length 512; "
       "make it at least 512"},
      {"term { dense { max_length: 100 } }", "is shorter than data.input_length 512"},
      {"term { factorized_random { max_length: 100 } }", "is shorter than data.input_length 512"},
      {"term { factorized_dense { a: 16 } }", "a * b = 16 * 16 = 256 is shorter"},
      {"term { factorized_dense { a: 65536 b: 65536 } }", ""},
      {"term { dot_product {} } term { dense { hidden: 32 } }",
       "hidden 32 cannot share the query projection of head_size 64"},
      {"term { dot_product {} } term { dense { hidden: 32 share_query: false } }", ""},
      {"term { dense { hidden: 32 } }", ""},
      {"term { random { deviation: 2 } }", "deviation has no effect with GLOROT_3D"},
      {"term { random { deviation: 2 initialization: NORMAL } }", ""},
  };
  for (const Case& each : cases) Expect(Attention(each.text), each.error);
  const std::string long_name(500000, 'a');
  Expect(Attention("term { name: '" + long_name + "' random {} }"), "");
  Expect(Attention("term { name: '" + long_name + "A' random {} }"),
         "term[0].name must be a word of lowercase letters");
}

TEST(Combinations, DecoderTables) {
  const std::string decoder = "model { decoder_mixer { attention { term { random { max_length: ";
  Expect(decoder + "114 } } } } }", "");
  Expect(decoder + "113 } } } } }",
         "max_length 113 is shorter than the target length 114 that follows from data.input_length "
         "512; make it at least 114");
  Expect(decoder + "113 } } } } } data { target_length: 113 }", "");
  Expect(decoder + "113 } } } } } data { target_length: 200 }",
         "max_length 113 is shorter than data.target_length 200; make it at least 200, or lower "
         "data.target_length");
  Expect("model { mixer {} }", "model.mixer names no kind; write e.g. mixer { attention {} }");
}

TEST(Combinations, Positions) {
  Expect("model { positions { sinusoidal {} } }", "");
  Expect("model { positions {} }",
         "model.positions names no kind; write e.g. positions { sinusoidal {} }");
  Expect("model { width: 513 positions { sinusoidal {} } }",
         "model.width 513 is odd, but model.positions.sinusoidal has a sine and a cosine of each "
         "wavelength; make it even");
  Expect("model { width: 513 positions { learned {} } }", "");
  Expect("model { positions { learned { max_length: 511 } } }",
         "model.positions.learned.max_length 511 is shorter than data.input_length 512; make it "
         "at least 512, or lower data.input_length");
}

TEST(Combinations, MapsOverPositions) {
  const std::string attention = "decoder_mixer { attention {} } } data { pack: false }";
  const auto encoder = [&](const std::string& mixer) {
    return "model { mixer { " + mixer + " } " + attention;
  };
  const std::pair<std::string, const char*> cases[] = {
      {encoder("fourier {}"), ""},
      {encoder("linformer {}"), ""},
      {encoder("mlp {}"), ""},
      {"model { mixer { gated_mlp {} } } data { pack: false }", ""},
      {"model { decoder_mixer { fourier {} } } data { pack: false }",
       "model.decoder_mixer is not causal, so the decoder cannot use it"},
      {"model { decoder { layers {} layers { mixer { mlp {} } } } } data { pack: false }",
       "model.decoder.layers[1].mixer is not causal, so the decoder cannot use it"},
      {"model { mixer { gated_mlp {} } }",
       "model.mixer cannot keep packed examples apart; set data.pack: false"},
      {"model { decoder_mixer { gated_mlp {} } }",
       "model.decoder_mixer cannot keep packed examples apart; set data.pack: false"},
      {"model { mixer { attention { term { random { max_length: 550 } } } } } "
       "data { target_length: 600 }",
       "random.max_length 550 is shorter than data.target_length 600"},
      {encoder("linformer { max_length: 511 }"),
       "model.mixer.linformer.max_length 511 is shorter than data.input_length 512"},
      {encoder("light_conv { form: MESH }"), ""},
      {encoder("light_conv { form: MESH heads: 4 }"),
       "model.mixer.light_conv.heads has no effect in form MESH, whose columns each have a filter; "
       "remove it or choose form FAIRSEQ"},
      {encoder("gated_mlp { width: 9 }"),
       "model.mixer.gated_mlp.width 9 is odd, but one half of it gates the other"},
      {encoder("gated_mlp { width: 12 heads: 4 }"),
       "model.mixer.gated_mlp.heads 4 does not divide half of model.mixer.gated_mlp.width 12"},
      {"model { mixer { linear_attention {} } } data { pack: false }",
       "model.mixer does not see the order of tokens, nor does anything else in the encoder; add "
       "e.g. model.positions { sinusoidal {} }"},
      {"model { mixer { linear_attention {} } positions { sinusoidal {} } } data { pack: false }",
       ""},
      {encoder("attention { relative_bias: false }"),
       "model.mixer does not see the order of tokens"},
      {encoder("attention { relative_bias: false term { dot_product {} } term { random {} } }"),
       ""},
      {"model { encoder { layers { mixer { performer {} } } layers {} } } data { pack: false }",
       ""},
      {"model { decoder_mixer { attention_free { window: 0 } } } data { pack: false }", ""},
      {"model { mixer { retention { head_size: 5 } } } data { pack: false }",
       "model.mixer.retention.head_size 5 is odd, but pairs of columns are rotated"},
      {"model { mixer { attention { heads: 6 key_value_heads: 4 } } }",
       "model.mixer.attention.key_value_heads 4 does not divide model.mixer.attention.heads 6"},
      {"model { cross_attention { heads: 2 key_value_heads: 4 } }",
       "model.cross_attention.key_value_heads 4 does not divide model.cross_attention.heads 2"},
  };
  for (const auto& [text, error] : cases) Expect(text, error);
}

TEST(Combinations, SparseAttention) {
  const auto encoder = [](const std::string& mixer) {
    return "model { positions { sinusoidal {} } mixer { " + mixer +
           " } decoder_mixer { attention {} } }";
  };
  const std::pair<std::string, const char*> cases[] = {
      {"model { mixer { local_attention {} } }", ""},
      {"model { mixer { local_attention { heads: 4 } } decoder_mixer { attention {} } }", ""},
      {"model { mixer { local_attention { global_projections: true global_tokens: 1 } } }", ""},
      {"model { mixer { local_attention { global_projections: true } } }",
       "model.mixer.local_attention.global_projections are those of global tokens, of which there "
       "are none; set global_tokens"},
      {encoder("big_bird {}"), ""},
      {encoder("reformer {}"), ""},
      {"model { positions { sinusoidal {} } mixer { reformer {} } }", ""},
      {encoder("sinkhorn {}") + " data { pack: false }", ""},
      {encoder("sinkhorn {}"),
       "model.mixer cannot keep packed examples apart; set data.pack: false"},
      {encoder("big_bird { max_length: 511 }"),
       "model.mixer.big_bird.max_length 511 is shorter than data.input_length 512"},
      {encoder("sinkhorn { max_length: 511 }") + " data { pack: false }",
       "model.mixer.sinkhorn.max_length 511 is shorter than data.input_length 512"},
      {encoder("reformer { buckets: 15 }"),
       "model.mixer.reformer.buckets 15 is odd, but half of them are the opposites of the other "
       "half; make it even"},
      {"model { decoder_mixer { big_bird {} } }",
       "model.decoder_mixer is not causal, so the decoder cannot use it"},
  };
  for (const auto& [text, error] : cases) Expect(text, error);
}

TEST(Combinations, Layers) {
  const std::string random = "mixer { attention { term { random { max_length: 113 } } } }";
  const std::string heads = "mixer { attention { heads: 4 } }";
  const auto encoder = [](const std::string& layers) {
    return "model { encoder { " + layers + " } }";
  };
  const auto decoder = [](const std::string& layers) {
    return "model { decoder { " + layers + " } }";
  };
  const std::pair<std::string, const char*> cases[] = {
      {encoder("layers { repeat: 5 } layers { mixer { attention {} } }"), ""},
      {encoder("layers { weights: 'a' } layers {} layers { weights: 'a' }"), ""},
      {encoder("layers { weights: 'a' mixer { attention { heads: 8 } } } "
               "layers { weights: 'a' feed_forward { width: 2048 } }"),
       ""},
      {encoder("layers { weights: 'a' mixer { fourier {} } } "
               "layers { weights: 'a' mixer { attention {} } }") +
           " data { pack: false }",
       "model.encoder.layers[1].weights: layers of the weights \"a\" must be alike"},
      {encoder("layers {} layers { " + random + " }"),
       "model.encoder.layers[1].mixer.attention.term[0].random.max_length 113 is shorter than "
       "data.input_length 512; make it at least 512"},
      {decoder("layers {} layers { " + random + " }"),
       "model.decoder.layers[1].mixer.attention.term[0].random.max_length 113 is shorter than the "
       "target length 114"},
      {"model { encoder_layers: 3 encoder { layers {} } }",
       "model.encoder: only one kind can be given, and encoder_layers is set"},
      {encoder(""), "model.encoder lists no layers; write e.g. encoder { layers { repeat: 6 } }"},
      {encoder("layers { mixer {} }"), "model.encoder.layers[0].mixer names no kind"},
      {encoder("layers { repeat: 257 }"), "model.encoder.layers[0].repeat: 257 is not allowed"},
      {encoder("layers {} layers { " + heads + " }"),
       "model.encoder.layers[1].mixer has 4 heads, but the encoder's relative bias has the 8 of "
       "model.mixer; give it as many, or set its relative_bias: false"},
      {encoder("layers {} layers { mixer { attention { heads: 4 relative_bias: false } } }"), ""},
      {encoder("layers { weights: 'a' } layers { weights: 'a' feed_forward { width: 8 } }"),
       "model.encoder.layers[1].weights: layers of the weights \"a\" must be alike, but this mixer "
       "or feed_forward is not that of model.encoder.layers[0].weights; use another name"},
      {encoder("layers { mixer { attention { gate: SIGMOID } } }"),
       "model.encoder.layers[0].mixer.attention.gate: SIGMOID weighs exactly two terms"},
  };
  for (const auto& [text, error] : cases) Expect(text, error);
}

TEST(Combinations, AListOfLayersReplacesTheirNumber) {
  const std::vector<std::string> list = {"model.encoder={ layers { repeat: 2 } layers {} }"};
  const Config config = ParseConfig("x", "model { encoder_layers: 12 }", list, kForModel);
  EXPECT_TRUE(config.model().has_encoder());
  EXPECT_EQ(config.model().encoder().layers_size(), 2);
}

TEST(Combinations, Others) {
  const Case cases[] = {
      {"model { vocabulary_size: 32101 }",
       "is odd; pad it to an even size, best to a multiple of "
       "128 (32128)"},
      {"model { vocabulary_size: 100 } data {}", "has no room for data.extra_ids 100"},
      {"model { relative_bias { buckets: 7 } }", "must be even"},
      {"model { relative_bias { buckets: 64 max_distance: 32 } }",
       "max_distance 32 must be larger"},
      {"data { input_length: 4096 }", "corrupted in 227 spans, but data.extra_ids gives 100"},
      {"data { input_length: 4096 target_length: 62 }", ""},
      {"data { input_length: 4096 target_length: 5000 train: 'c4' }", "corrupted in 227 spans"},
      {"data { target_length: 114 train: 'c4' }", ""},
      {"data { target_length: 113 train: 'c4' }",
       "data.target_length 113 has no room for the 114 targets that span corruption makes of "
       "data.input_length 512; leave it out"},
      {"data { target_length: 8 train: 'c4' validation: 'c4' task { cola {} } }", ""},
      {"data { input_length: 4096 task { cola {} } }", ""},
      {"data { target_length: -1 }", "data.target_length: -1 is not allowed"},
      {"data { mixture { temperature: 0 } }", "data.mixture.temperature: 0 is not allowed"},
      {"train { batch_size: 12 micro_batch_size: 5 }",
       "batch_size 12 is not a multiple of "
       "train.micro_batch_size 5"},
      {"train { batch_size: 12 micro_batch_size: 4 }", ""},
      {"train { batch_size: 12 reduction: EXACT }",
       "train.reduction EXACT needs a train.micro_batch_size, the examples of each gradient that "
       "is "
       "added; set a divisor of train.batch_size 12"},
      {"train { batch_size: 12 micro_batch_size: 4 reduction: EXACT }", ""},
      {"train { joint_cross_attention: true }", ""},
      {"optimizer { schedule { kind: LINEAR rate: 0.1 final_rate: 0.2 } }",
       "final_rate 0.2 is above rate 0.1"},
      {"optimizer { schedule { kind: COSINE warmup_steps: 50 } } train { steps: 50 }",
       "optimizer.schedule.warmup_steps 50 must be less than train.steps 50 for a COSINE schedule"},
      {"train { steps: 50 }", ""},
      {"checkpoint { every: 100 milestone_every: 150 }", "is not a multiple of checkpoint.every"},
      {"train { steps: 50 profile { first_step: 51 steps: 1 } }",
       "train.profile.first_step 51 is after train.steps 50, so nothing would be recorded"},
      {"train { steps: 5 profile { steps: 3 } }",
       "train.profile.first_step 10 is after train.steps 5"},
      {"train { steps: 50 profile { first_step: 50 steps: 9 } }", ""},
      {"train { steps: 5 profile {} }", ""},
      {"decoding { outputs: 1 }", ""},
      {"decoding { outputs: 2 }",
       "greedy decoding gives one output, not 2; set decoding.beam or decoding.sample"},
      {"decoding { outputs: 2 sample {} }", ""},
      {"evaluation { samples: 3 }", ""},
      {"evaluation { samples: 3 } data { task { cola {} } }",
       "evaluation.samples 3 is not possible: tasks are learned"},
  };
  for (const Case& each : cases) Expect(each.text, each.error);
}

TEST(Combinations, BrokenFieldsAreNotJudged) {
  Expect("data { input_length: -5 } " + Attention("term { random { max_length: 8 } }"),
         "data.input_length: -5 is not allowed");
  Expect("train { batch_size: twelve micro_batch_size: 5 }", "expected an integer");
}

TEST(Combinations, Architectures) {
  const std::string decoder = "model { architecture: DECODER_ONLY ";
  const Case cases[] = {
      {"decoder_layers: 3 } data { objective: CAUSAL_LM }", ""},
      {"decoder { layers { repeat: 3 } } } data { objective: PREFIX_LM }", ""},
      {"encoder_layers: 3 } data { objective: CAUSAL_LM }",
       "model.encoder_layers means nothing with model.architecture DECODER_ONLY; leave it out"},
      {"encoder { layers {} } } data { objective: CAUSAL_LM }", "model.encoder means nothing"},
      {"decoder_mixer { attention {} } } data { objective: CAUSAL_LM }",
       "model.decoder_mixer means nothing"},
      {"cross_attention { heads: 2 } } data { objective: CAUSAL_LM }",
       "model.cross_attention means nothing"},
      {"}",
       "model.architecture DECODER_ONLY does not learn by data.objective SPAN_CORRUPTION; set "
       "data.objective: CAUSAL_LM or PREFIX_LM, or another architecture"},
      {"mixer { fourier {} } } data { objective: CAUSAL_LM pack: false }",
       "model.mixer is not causal, so the decoder cannot use it; set another in "
       "mixer or"},
      {"mixer { attention { term { random { max_length: 511 } } } } } data { objective: CAUSAL_LM "
       "}",
       "random.max_length 511 is shorter than data.input_length 512; make it at least 512"},
      {"mixer { attention { term { random {} } } } } data { target_length: 14 task { cola {} } }",
       "random.max_length 512 is shorter than the 526 tokens of inputs and targets"},
      {"} train { joint_cross_attention: true } data { objective: CAUSAL_LM }",
       "train.joint_cross_attention needs cross-attention, which model.architecture DECODER_ONLY "
       "does not have; leave it out"},
      {"bidirectional_prefix: true } data { objective: PREFIX_LM }", ""},
      {"bidirectional_prefix: true mixer { attention { relative_bias: false } } } data { "
       "objective: "
       "PREFIX_LM }",
       "nor does anything else in the bidirectional prefix"},
      {"mixer { attention { relative_bias: false } } } data { objective: PREFIX_LM }", ""},
      {"bidirectional_prefix: true decoder { layers {} layers { mixer { retention {} } } } } data "
       "{ "
       "objective: PREFIX_LM pack: false }",
       "model.decoder.layers[1].mixer cannot let inputs read what comes after them; use attention, "
       "or "
       "leave out model.bidirectional_prefix: then they read from left to right"},
      // Neither corruption nor sentinels limit a language model.
      {"} data { objective: CAUSAL_LM input_length: 4096 extra_ids: 1 }", ""},
  };
  for (const Case& c : cases) Expect(decoder + c.text, c.error);
  const std::string encoder = "model { architecture: ENCODER_ONLY ";
  const std::string task = "} data { task { cola {} } pack: false }";
  const std::pair<std::string, std::string> classifiers[] = {
      {"encoder_layers: 3 classifier { classes: 2 pooling: FIRST } mixer { fourier {} } "
       "positions { sinusoidal {} } " +
           task,
       ""},
      {"decoder_layers: 3 " + task,
       "model.decoder_layers means nothing with model.architecture ENCODER_ONLY; leave it out"},
      {"tied_embeddings: true " + task, "model.tied_embeddings means nothing"},
      {"} data { task { cola {} } pack: true }",
       "model.architecture ENCODER_ONLY gives each row one class, so rows cannot be packed; set "
       "data.pack: false"},
      {"} data { train: \"c4\" pack: false }",
       "model.architecture ENCODER_ONLY learns no text, only tasks; list some in data.task and run "
       "syntra finetune, or set another architecture"},
  };
  for (const auto& [text, error] : classifiers) Expect(encoder + text, error);
  const std::string masked = "model { architecture: ENCODER_MASKED_LM ";
  const Case masked_cases[] = {
      {"mixer { fourier { max_length: 4096 } } positions { sinusoidal {} } } data { objective: "
       "MASKED_LM pack: false "
       "input_length: 4096 extra_ids: 1 }",
       ""},
      {"classifier { classes: 2 } } data { objective: MASKED_LM }",
       "model.classifier means nothing with model.architecture ENCODER_MASKED_LM; leave it out"},
      {"} data { objective: CAUSAL_LM }",
       "model.architecture ENCODER_MASKED_LM does not learn by data.objective CAUSAL_LM; set "
       "data.objective: MASKED_LM, or another architecture"},
      {"} data { task { cola {} } }",
       "model.architecture ENCODER_MASKED_LM learns no tasks; set model.architecture: ENCODER_ONLY "
       "and model.classifier, and start from what it has learned"},
  };
  for (const Case& c : masked_cases) Expect(masked + c.text, c.error);
  Expect("model { classifier { classes: 2 } }",
         "model.classifier means nothing with model.architecture ENCODER_DECODER; leave it out");
  Expect(
      "model { bidirectional_prefix: true }",
      "model.bidirectional_prefix means nothing with model.architecture ENCODER_DECODER; leave it "
      "out");
  Expect("data { objective: PREFIX_LM }",
         "model.architecture ENCODER_DECODER does not learn by data.objective PREFIX_LM; set "
         "data.objective: SPAN_CORRUPTION, or another architecture");
}

}  // namespace
}  // namespace syntra
