// SPDX-License-Identifier: Apache-2.0
// Sums of a vector over ranks: by our communicator and by MPI_Allreduce, in turns. Run it by
// mpirun; rank 0 prints a line of JSON for each size, with the seconds of each turn.
// tests/bench/comm runs it.
//
//   launch/ranks 2 build/tests/bench/comm_bench --megabytes 64 256 --turns 5
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "core/buffer.h"
#include "core/thread.h"
#include "dist/mpi.h"

namespace syntra {
namespace {

using Json = nlohmann::json;

class Sums {
 public:
  Sums(Communicator& ranks, int64_t bytes)
      : ranks_(ranks),
        count_(bytes / static_cast<int64_t>(sizeof(float))),
        shares_(Shares::Even(count_, ranks.size())),
        memory_(count_ * sizeof(float), "a vector"),
        other_(count_ * sizeof(float), "its sum by MPI"),
        exposed_(ranks.Expose(view())) {}

  void AllReduce() { ranks_.AllReduceSum(view()); }
  void ReduceScatter() { ranks_.ReduceScatter(view(), shares_); }
  // Into another vector, which Open MPI does faster than in place.
  void MpiAllReduce() {
    if (MPI_Allreduce(values().data(), other().data(), static_cast<int>(count_), MPI_FLOAT, MPI_SUM,
                      MPI_COMM_WORLD) != MPI_SUCCESS) {
      Fail(ExitCode::kPeerLost, "MPI_Allreduce failed");
    }
  }

  void Fill() { std::ranges::fill(values(), static_cast<float>(1 + ranks_.rank())); }
  // Whether the elements of [first, last) are the sum of what Fill wrote.
  void Check(std::span<const float> sums, int64_t first, int64_t last) const {
    const auto sum = static_cast<float>(ranks_.size() * (ranks_.size() + 1) / 2);
    if (std::ranges::count(sums.subspan(first, last - first), sum) == last - first) return;
    Fail(ExitCode::kInternal, "a sum over the ranks is wrong");
  }
  void CheckAllReduce() const { Check(values(), 0, count_); }
  void CheckReduceScatter() const {
    Check(values(), shares_.begin(ranks_.rank()), shares_.end(ranks_.rank()));
  }
  void CheckMpiAllReduce() const { Check(other(), 0, count_); }

 private:
  std::span<float> Floats(const Buffer& memory) const {
    return {reinterpret_cast<float*>(memory.data()), static_cast<size_t>(count_)};
  }
  std::span<float> values() const { return Floats(memory_); }
  std::span<float> other() const { return Floats(other_); }
  TensorView view() const { return {memory_.data(), {DType::kF32, {count_}}}; }

  Communicator& ranks_;
  int64_t count_;
  Shares shares_;
  Buffer memory_, other_;
  std::shared_ptr<Exposure> exposed_;  // as in training
};

struct Operation {
  const char* name;
  void (Sums::*run)();
  void (Sums::*check)() const;
};
constexpr Operation kOperations[] = {
    {"all_reduce", &Sums::AllReduce, &Sums::CheckAllReduce},
    {"reduce_scatter", &Sums::ReduceScatter, &Sums::CheckReduceScatter},
    {"mpi_all_reduce", &Sums::MpiAllReduce, &Sums::CheckMpiAllReduce}};

// Seconds until the slowest rank is done.
double SecondsOf(Communicator& ranks, Sums& sums, const Operation& operation) {
  sums.Fill();
  ranks.Barrier();
  const auto begin = Clock::now();
  (sums.*operation.run)();
  double seconds[] = {SecondsSince(begin)};
  ranks.AllReduceMax(seconds);
  (sums.*operation.check)();
  return seconds[0];
}

void Measure(Communicator& ranks, const std::vector<std::string>& wanted, int64_t megabytes,
             int turns) {
  Sums sums(ranks, megabytes * 1'000'000);
  std::map<std::string, std::vector<double>> seconds;
  for (int turn = -1; turn < turns; ++turn) {  // the first one warms up
    for (const Operation& operation : kOperations) {
      if (std::ranges::count(wanted, operation.name) == 0) continue;
      const double each = SecondsOf(ranks, sums, operation);
      if (turn >= 0) seconds[operation.name].push_back(each);
    }
  }
  if (ranks.rank() == 0) {
    std::cout << Json{{"megabytes", megabytes}, {"seconds", seconds}} << std::endl;
  }
}

}  // namespace
}  // namespace syntra

int main(int argc, char** argv) {
  CLI::App app("Sums of a vector over ranks.");
  syntra::MpiOptions mpi;
  std::vector<int64_t> megabytes = {64, 256};
  std::vector<std::string> operations = {"all_reduce", "reduce_scatter", "mpi_all_reduce"};
  int turns = 5, threads = 1;
  app.add_option("--megabytes", megabytes);
  app.add_option("--turns", turns);
  app.add_option("--threads", threads, "of each rank");
  app.add_option("--operations", operations, "those wanted");
  app.add_option("--chunk-bytes", mpi.chunk_bytes, "shared memory a rank and buffer");
  CLI11_PARSE(app, argc, argv);
  syntra::SetThreadCount(threads);
  syntra::MpiCommunicator ranks(&argc, &argv, mpi);
  try {
    for (const int64_t each : megabytes) syntra::Measure(ranks, operations, each, turns);
  } catch (const syntra::Error& error) {
    std::cerr << error.what() << '\n';
    ranks.Abort(error.code());
  }
}
