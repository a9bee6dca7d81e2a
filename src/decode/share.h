// SPDX-License-Identifier: Apache-2.0
// Batches of requests shared by ranks: each takes every size-th batch, and all get all results.
// Batches do not depend on the ranks, so neither do the results.
#pragma once

#include <cmath>
#include <span>
#include <vector>

#include "core/busy_cores.h"
#include "decode/distribution.h"
#include "decode/requests.h"
#include "decode/strategy.h"
#include "dist/communicator.h"

namespace syntra {

// Results as numbers on their way between ranks; Take removes them from the front of `values`.
void Put(const Hypotheses& hypotheses, std::vector<double>* values);
void Take(std::span<const double>* values, Hypotheses* hypotheses);
void Put(const std::vector<double>& scores, std::vector<double>* values);
void Take(std::span<const double>* values, std::vector<double>* scores);

// Every rank's values on all ranks, by rank; ranks may have different numbers of them.
std::vector<std::vector<double>> GatherValues(Communicator& ranks, std::span<const double> values);

// Returns one result for each of `count` requests, on every rank. `run` returns the results of a
// batch, in the order of its requests; if it throws NotFiniteOutput on any rank, all throw that.
// `on_batch` may be empty.
template <typename Result, typename Run>
std::vector<Result> ShareBatches(std::span<const RequestBatch> batches, size_t count,
                                 Communicator& ranks, const Run& run,
                                 const OnBatch& on_batch = {}) {
  std::vector<Result> results(count);
  std::vector<double> own;
  try {
    for (size_t i = ranks.rank(); i < batches.size(); i += ranks.size()) {
      std::vector<Result> of_batch = run(batches[i]);
      for (size_t k = 0; k < of_batch.size(); ++k) {
        if (ranks.size() > 1) Put(of_batch[k], &own);
        results[batches[i].requests[k]] = std::move(of_batch[k]);
      }
      if (on_batch) on_batch(of_batch.size());
      LookWhetherCoresAreBusy();
    }
  } catch (const NotFiniteOutput&) {
    if (ranks.size() == 1) throw;
    own = {NAN};  // which no result is
  }
  if (ranks.size() == 1) return results;
  const std::vector<std::vector<double>> all = GatherValues(ranks, own);
  for (int rank = 0; rank < ranks.size(); ++rank) {
    std::span<const double> values = all[rank];
    if (values.size() == 1 && std::isnan(values.front())) throw NotFiniteOutput(NAN);
    for (size_t i = rank; i < batches.size(); i += ranks.size()) {
      for (const size_t request : batches[i].requests) Take(&values, &results[request]);
    }
  }
  return results;
}

}  // namespace syntra
