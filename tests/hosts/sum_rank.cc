// SPDX-License-Identifier: Apache-2.0
// A rank that adds vectors with the others, by every collective, and tells where it ran and a
// digest of all that it received. Usage: sum_rank ROUNDS ELEMENTS. On stderr rank 0 says when it
// has begun.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <vector>

#include "base/digest.h"
#include "base/error.h"
#include "base/host.h"
#include "base/log.h"
#include "base/text.h"
#include "dist/communicator.h"
#include "run/signals.h"

namespace syntra {
namespace {

// Values of mixed sign and magnitude, so that another order of additions has other bits.
float Value(int64_t round, int rank, int64_t i) {
  uint64_t bits = (uint64_t(round) * 131 + rank) * 0x9E3779B97F4A7C15u + i * 0xBF58476D1CE4E5B9u;
  bits ^= bits >> 31;
  bits *= 0x94D049BB133111EBu;
  const float unit = static_cast<float>(bits >> 40) / (1 << 24) - 0.5f;
  return std::ldexp(unit, static_cast<int>(bits & 15));
}

Shares Uneven(int64_t elements, int ranks) {
  std::vector<int64_t> ends;
  for (int rank = 1; rank < ranks; ++rank) ends.push_back(rank * elements / (ranks + 1));
  ends.push_back(elements);
  return Shares(ends);
}

Digest Sum(Communicator& ranks, int64_t rounds, int64_t elements) {
  const Shares shares = Uneven(elements, ranks.size());
  std::vector<float> whole(elements), shared(elements);
  const TensorType type{DType::kF32, {elements}};
  std::string received;
  for (int64_t round = 0; round < rounds; ++round) {
    for (int64_t i = 0; i < elements; ++i) whole[i] = Value(round, ranks.rank(), i);
    shared = whole;
    ranks.AllReduceSum({whole.data(), type});
    ranks.ReduceScatter({shared.data(), type}, shares);
    ranks.AllGather({shared.data(), type}, shares);
    double short_sum = whole.front() * (ranks.rank() + 0.1);
    ranks.AllReduceSum(std::span(&short_sum, 1));
    received += ToHex(DigestOf(std::as_bytes(std::span(whole))));
    received += ToHex(DigestOf(std::as_bytes(std::span(shared))));
    received += fmt::format("{:a}\n", short_sum);
    if (round == 0 && ranks.rank() == 0) fmt::print(stderr, "begun\n");
  }
  return DigestOf(received);
}

void Run(Communicator& ranks, int64_t rounds, int64_t elements) {
  const Digest digest = Sum(ranks, rounds, elements);
  const std::string line =
      fmt::format("rank {}: {} of {} on {}, received {}\n", ranks.rank(), ranks.rank_on_host(),
                  ranks.ranks_on_host(), HostName(), ToHex(digest));
  for (const std::string& text : ranks.Gather(line)) fmt::print("{}", text);
}

}  // namespace
}  // namespace syntra

int main(int argc, char** argv) {
  using namespace syntra;
  DieWithParent();
  const std::unique_ptr<Communicator> communicator = MakeCommunicator(&argc, &argv);
  try {
    int64_t rounds = 0, elements = 0;
    if (argc != 3 || !ParseInt64(argv[1], &rounds) || !ParseInt64(argv[2], &elements)) {
      Fail(ExitCode::kConfig, "usage: sum_rank ROUNDS ELEMENTS");
    }
    Run(*communicator, rounds, elements);
  } catch (const Error& error) {
    Log().error("{}", error.what());
    communicator->Abort(error.code());
  }
}
