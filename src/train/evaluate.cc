#include "train/evaluate.h"

#include <algorithm>
#include <array>

namespace syntra {
namespace {

// A 64-bit sum as three exact doubles: every part stays below 2^53 after adding over the ranks.
constexpr int kParts = 3;
constexpr int kPartBits = 22;

}  // namespace

EvaluationResult Evaluate(Replica& replica, const ValidationData& data, Communicator& ranks,
                          int64_t batches, int64_t batch_size) {
  const int64_t count = std::min(batches, data.BatchCount(batch_size));
  if (count == 0) {
    Fail(ExitCode::kData,
         "the validation split has {} examples, fewer than one batch of {}; set "
         "evaluation.batch_size lower",
         data.example_count(), batch_size);
  }
  LossSums sums;
  uint64_t checksum = 0;
  // Whole batches go round the ranks: the sums do not depend on how many ranks there are, up to the
  // rounding of their order.
  for (int64_t i = ranks.rank(); i < count; i += ranks.size()) {
    const Batch batch = data.Get(i, batch_size, 0, batch_size);
    sums.Add(replica.Evaluate(batch));
    checksum += LabelChecksum(batch);
  }
  std::array<double, 2 + kParts> shared{sums.negative_log_p, sums.tokens};
  for (int part = 0; part < kParts; ++part) {
    shared[2 + part] =
        static_cast<double>(checksum >> (part * kPartBits) & ((uint64_t{1} << kPartBits) - 1));
  }
  ranks.AllReduceSum(shared);
  uint64_t total = 0;
  for (int part = 0; part < kParts; ++part) {
    total += static_cast<uint64_t>(shared[2 + part]) << (part * kPartBits);
  }
  return {shared[0] / shared[1], static_cast<int64_t>(shared[1]), count, total};
}

}  // namespace syntra
