// SPDX-License-Identifier: Apache-2.0
#include "mixers/mixer_cases.h"

namespace syntra {

MixerRow cases_attention() {
  const std::string dot = " term { dot_product {} }";
  const std::string random = " term { random { max_length: 9 } }";
  const std::string factorized = " term { factorized_random { max_length: 9 rank: 3 } }";
  const std::string broadcast =
      " term { factorized_random { max_length: 9 rank: 3 broadcast_over_queries: true } }";
  const auto dense = [](const std::string& more = "") {
    return " term { dense { max_length: 9 " + more + " } }";
  };
  const auto factorized_dense = [](const std::string& more = "") {
    return " term { factorized_dense { a: 3 b: 3 " + more + " } }";
  };
  const std::string no_bias = " relative_bias: false";
  const std::string sigmoid = " gate: SIGMOID", softmax = " gate: SOFTMAX";
  const std::string by_position = " index_by: SEGMENT_POSITION";
  MixerRow row;
  const auto add = [&](const std::string& name, const std::string& text) {
    row.alone.push_back({name, "attention { heads: 3 head_size: 4" + text + " }"});
  };
  add("dot", dot);
  add("dot_without_bias", dot + no_bias);
  add("random", random);
  add("random_without_bias", random + no_bias);
  add("random_one_for_all_heads", " term { random { max_length: 9 per_head: false } }");
  add("random_one_for_all_heads_without_bias",
      " term { random { max_length: 9 per_head: false } }" + no_bias);
  add("random_fixed", " term { random { max_length: 9 trainable: false } }" + no_bias);
  add("random_by_position", random + by_position);
  add("factorized_random", factorized);
  add("factorized_random_without_bias", factorized + no_bias);
  add("factorized_random_by_position", factorized + by_position);
  add("factorized_random_broadcast", broadcast);
  add("factorized_random_broadcast_without_bias", broadcast + no_bias);
  add("dense", dense());
  add("dense_without_bias", dense() + no_bias);
  add("dense_by_position", dense() + by_position);
  add("dense_per_head", dense("share_heads: false"));
  add("dense_hidden", dense("hidden: 5"));
  add("dense_biases", dense("bias: true"));
  add("dense_biases_per_head", dense("bias: true share_heads: false hidden: 5") + no_bias);
  add("factorized_dense", factorized_dense());
  add("factorized_dense_by_position", factorized_dense() + by_position);
  add("factorized_dense_per_head",
      factorized_dense("bias: true share_heads: false hidden: 5") + no_bias);
  add("dense_and_dot", dense() + dot);
  add("dense_and_dot_sigmoid", dense() + dot + sigmoid);
  add("dense_and_dot_apart", dot + dense("share_query: false") + softmax);
  add("dense_and_dot_biases", dot + dense("bias: true"));
  add("dot_and_factorized_dense", dot + factorized_dense("bias: true") + sigmoid + no_bias);
  add("random_and_dot", dot + random);
  add("random_and_dot_sigmoid", dot + random + sigmoid);
  add("random_and_dot_by_position", dot + random + sigmoid + by_position);
  add("factorized_random_and_dot", dot + factorized + sigmoid + no_bias);
  add("random_and_dense", random + dense() + softmax + no_bias);
  add("two_tables", random + factorized + softmax);
  add("two_tables_of_different_lengths",
      " term { random { max_length: 11 } }" + broadcast + softmax);
  const std::string bias = " term { relative_bias { buckets: 8 max_distance: 16 } }" + no_bias;
  add("two_random_tables", random + " term { name: \"other\" random { max_length: 11 } }");
  add("dot_named", " term { name: \"content\" dot_product {} }" + random);
  add("dot_and_own_bias", dot + bias + sigmoid);
  add("own_bias", bias);
  add("three_terms", dot + random + dense("bias: true") + softmax);
  add("all_terms", dot + random + factorized + dense() + factorized_dense() + softmax);
  add("all_terms_by_position",
      dot + random + factorized + dense("bias: true") + factorized_dense() + softmax + by_position);
  add("shared_keys_and_values", dot + " key_value_heads: 1");
  add("random_with_shared_values", random + dot + sigmoid + " key_value_heads: 1");
  const auto add_in_models = [&](const std::string& name, int64_t kept_per_position,
                                 const std::string& text) {
    row.in_models.push_back(
        {name, "attention { heads: 2 head_size: 8" + text + " }", kept_per_position});
  };
  // Kept are values and, where a term reads them, keys.
  const std::string normal = " term { random { max_length: 16 initialization: NORMAL } }";
  add_in_models("dot", 32, dot);
  add_in_models("random", 16, normal);
  add_in_models("random_and_dot", 32, normal + dot + sigmoid);
  add_in_models("dense", 16, " term { dense { max_length: 16 } }");
  add_in_models("dense_and_dot", 32, dot + " term { dense { max_length: 16 bias: true } }");
  add_in_models("factorized_random", 16,
                " term { factorized_random { max_length: 16 rank: 4 initialization: NORMAL } }");
  add_in_models("factorized_dense", 16, " term { factorized_dense { a: 4 b: 4 } }");
  add_in_models("multi_query", 16, dot + " key_value_heads: 1");
  return row;
}

}  // namespace syntra
