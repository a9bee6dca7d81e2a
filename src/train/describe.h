// SPDX-License-Identifier: Apache-2.0
// Describes runs in a few words, for the start of a run and for `syntra report`.
#pragma once

#include <string>
#include <vector>

#include "configs/schema/config.pb.h"

namespace syntra {

// "3+3 layers of width 192, random + dot_product; 13.4M parameters".
std::string DescribeModel(const ModelConfig& model, int64_t parameters);
// Counts the parameters itself.
std::string DescribeModel(const ModelConfig& model);

// Facts that are known only once a run has begun.
struct RunStart {
  int64_t step = 0;  // where it stands
  int64_t parameters = 0;
  std::string data;  // "1,000 documents, 2.1M tokens"
  int64_t rows_in_epoch = 0;
  std::vector<std::string> hosts, cpus;  // of each rank
  int threads = 1;                       // of a rank
  std::string backend;
  bool is_faster_in_bf16 = false;  // its processor
};

// The lines with which a run begins: directory and steps, model, data, machine, cores of ranks.
std::vector<std::string> DescribeStart(const Config& config, const RunStart& start);

}  // namespace syntra
