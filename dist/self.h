// SPDX-License-Identifier: Apache-2.0
// One rank: every collective is the identity.
#pragma once

#include <string>
#include <vector>

#include "dist/communicator.h"

namespace syntra {

class SelfCommunicator final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  int ranks_on_host() const override { return 1; }
  int rank_on_host() const override { return 0; }
  std::string_view name() const override { return "self"; }
  void AllReduceSum(TensorView view) override;
  void ReduceScatter(TensorView view, const Shares& shares) override;
  void AllGather(TensorView view, const Shares& shares) override;
  void Broadcast(TensorView view, int root) override;
  std::vector<double> AllGather(std::span<const double> values) override {
    return {values.begin(), values.end()};
  }
  void AllReduceSum(std::span<double>) override {}
  void AllReduceMax(std::span<double>) override {}
  void Barrier() override {}
  std::vector<std::string> Gather(std::string_view text) override { return {std::string(text)}; }
  [[noreturn]] void Abort(ExitCode code) override;
};

}  // namespace syntra
