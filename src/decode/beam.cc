// SPDX-License-Identifier: Apache-2.0
// Beam search as in T5 (mesh_tensorflow/beam_search.py). An output of `length` tokens, the one that
// ends it included, has the score log-probability / ((5 + length) / 6)^alpha (Wu et al. 2016,
// "Google's Neural Machine Translation System", without coverage).
//
// Each step looks at the 2 * size best continuations of an input's beginnings (hypotheses). Those
// that end go to the finished outputs, of which the best `size` are kept; the best `size` others
// are continued. An input is done when its most probable beginning can no longer reach, even at the
// longest length, the score of the worst finished output that is wanted; with early_stopping also
// when `size` outputs have ended.
//
// Differences from T5: T5 waits for one finished output, and until no beginning can reach the worst
// of the outputs that it keeps; here a search waits for as many outputs as are wanted, and for
// those alone. T5 continues until all inputs of a batch are done. Neither changes the outputs that
// are wanted. T5's longest length follows from the longest input of a batch; here it is the
// session's, so that an output does not depend on its neighbours.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "core/thread.h"
#include "decode/distribution.h"
#include "decode/strategy.h"

namespace syntra {

std::unique_ptr<Strategy> strategy_greedy(const DecodingConfig&);

namespace {

// A beginning that goes on with token `id`.
struct Candidate {
  double log_probability;
  int64_t parent;  // among the input's beginnings
  int32_t id;
  bool ends;  // the output, before `id`
};

struct Beginning {
  std::vector<int32_t> ids;
  double log_probability = 0;
  int64_t row = 0, origin = 0;  // its row of the session among the input's, that of its parent
};

// The results of a step: the logits of every row, and the length of the outputs that end with it.
struct Step {
  LogitRows logits;
  int64_t length, max_length;
};

// The search for one input's outputs.
struct Search {
  std::vector<Beginning> alive{{}};  // the most probable first; at the start one that is empty
  Hypotheses finished;               // by score
  bool done = false;
};

double ScoreOf(double log_probability, int64_t length, double alpha) {
  return log_probability / std::pow((5.0 + static_cast<double>(length)) / 6.0, alpha);
}

class Beam final : public Strategy {
 public:
  explicit Beam(const DecodingConfig& config)
      : size_(config.beam().size()),
        alpha_(config.beam().alpha()),
        early_stopping_(config.beam().early_stopping()),
        outputs_(config.outputs()) {}

  int64_t rows_per_input() const override { return size_; }

  std::vector<Hypotheses> Decode(DecodeSession& session, const DecodeBatch& batch) const override {
    std::vector<Search> searches(batch.inputs);
    std::vector<int32_t> ids = session.first_tokens(), parents(session.shape().rows());
    const auto open = [](const Search& search) { return !search.done; };
    for (;;) {
      session.Append(ids);
      const Step step{session.logits(), session.length(), session.max_length()};
      ParallelFor(batch.inputs, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          if (!searches[i].done) Advance(step, batch, i, searches[i]);
        }
      });
      if (step.length == step.max_length || std::ranges::none_of(searches, open)) break;
      std::iota(parents.begin(), parents.end(), 0);
      for (int64_t i = 0; i < batch.inputs; ++i) {
        if (searches[i].done) {
          session.Finish(i);
          continue;
        }
        for (const Beginning& beginning : searches[i].alive) {
          parents[i * size_ + beginning.row] = static_cast<int32_t>(i * size_ + beginning.origin);
          ids[i * size_ + beginning.row] = beginning.ids.back();
        }
      }
      session.TakePrefixes(parents);
    }
    std::vector<Hypotheses> outputs;
    outputs.reserve(searches.size());
    for (Search& search : searches) outputs.push_back(OutputsOf(search));
    return outputs;
  }

 private:
  double Score(double log_probability, int64_t length) const {
    return ScoreOf(log_probability, length, alpha_);
  }

  // The 2 * size most probable continuations of a beginning. Whatever ends it, the output is the
  // same: only its best end counts, and the others leave their places to tokens that continue it.
  std::vector<Candidate> ContinuationsOf(const Step& step, const DecodeBatch& batch, int64_t input,
                                         const Search& search, int64_t parent) const {
    const std::span<const float> logits = step.logits[input * size_ + search.alive[parent].row];
    const double before = search.alive[parent].log_probability - LogSumExp(logits);
    const auto wanted = static_cast<size_t>(2 * size_);
    std::vector<Candidate> kept;
    for (size_t looked_at = wanted;; looked_at *= 2) {
      kept.clear();
      bool has_end = false;
      for (const int32_t id : TopTokens(logits, static_cast<int64_t>(looked_at))) {
        const bool ends = batch.ends(input, search.alive[parent].ids, id);
        if (!ends || !has_end) kept.push_back({before + logits[id], parent, id, ends});
        has_end |= ends;
      }
      if (kept.size() >= wanted || looked_at >= logits.size()) break;
    }
    kept.resize(std::min(kept.size(), wanted));
    return kept;
  }

  // The 2 * size most probable continuations of all beginnings; of equals that of the better
  // beginning, then of the lower id.
  std::vector<Candidate> Continuations(const Step& step, const DecodeBatch& batch, int64_t input,
                                       const Search& search) const {
    std::vector<Candidate> candidates;
    for (int64_t parent = 0; parent < std::ssize(search.alive); ++parent) {
      std::ranges::copy(ContinuationsOf(step, batch, input, search, parent),
                        std::back_inserter(candidates));
    }
    std::ranges::stable_sort(candidates, std::greater<>(), &Candidate::log_probability);
    candidates.resize(std::min<size_t>(candidates.size(), 2 * size_));
    return candidates;
  }

  // Gives each beginning a row. The first that continues a beginning takes its row, so that only
  // the prefixes of others are copied, to rows whose own ones have come to an end.
  void PlaceInRows(std::vector<Beginning>& alive) const {
    std::vector<bool> taken(size_, false);
    std::vector<Beginning*> others;
    for (Beginning& beginning : alive) {
      beginning.row = beginning.origin;
      if (taken[beginning.row]) others.push_back(&beginning);
      taken[beginning.row] = true;
    }
    auto free = taken.begin();
    for (Beginning* beginning : others) {
      free = std::find(free, taken.end(), false);
      *free = true;
      beginning->row = free - taken.begin();
    }
  }

  void Advance(const Step& step, const DecodeBatch& batch, int64_t input, Search& search) const {
    std::vector<Beginning> alive;
    for (const Candidate& candidate : Continuations(step, batch, input, search)) {
      const Beginning& parent = search.alive[candidate.parent];
      if (candidate.ends) {
        search.finished.push_back(
            {parent.ids, candidate.log_probability, Score(candidate.log_probability, step.length)});
      } else if (alive.size() < static_cast<size_t>(size_)) {
        alive.push_back({.ids = parent.ids,
                         .log_probability = candidate.log_probability,
                         .origin = parent.row});
        alive.back().ids.push_back(candidate.id);
      }
    }
    PlaceInRows(alive);
    search.alive = std::move(alive);
    std::ranges::stable_sort(search.finished, std::greater<>(), &Hypothesis::score);
    if (search.finished.size() > static_cast<size_t>(size_)) search.finished.resize(size_);
    search.done = IsDone(step, search);
  }

  bool IsDone(const Step& step, const Search& search) const {
    if (search.alive.empty()) return true;
    if (early_stopping_ && search.finished.size() == static_cast<size_t>(size_)) return true;
    const auto wanted = static_cast<size_t>(outputs_);
    return search.finished.size() >= wanted &&
           search.finished[wanted - 1].score >
               Score(search.alive.front().log_probability, step.max_length);
  }

  // Where fewer have finished than are wanted, the most probable beginnings follow them.
  Hypotheses OutputsOf(Search& search) const {
    const auto wanted = static_cast<size_t>(outputs_);
    for (Beginning& beginning : search.alive) {
      if (search.finished.size() >= wanted) break;
      const auto length = static_cast<int64_t>(beginning.ids.size());
      search.finished.push_back({std::move(beginning.ids), beginning.log_probability,
                                 Score(beginning.log_probability, length)});
    }
    if (search.finished.size() > wanted) search.finished.resize(wanted);
    return std::move(search.finished);
  }

  int64_t size_;
  double alpha_;
  bool early_stopping_;
  int64_t outputs_;
};

// Greedy decoding with the scores of a beam.
class BeamOfOne final : public Strategy {
 public:
  explicit BeamOfOne(const DecodingConfig& config)
      : greedy_(strategy_greedy(config)), alpha_(config.beam().alpha()) {}

  NextTokens next_tokens() const override { return greedy_->next_tokens(); }

  std::vector<Hypotheses> Decode(DecodeSession& session, const DecodeBatch& batch) const override {
    std::vector<Hypotheses> outputs = greedy_->Decode(session, batch);
    for (Hypotheses& output : outputs) {
      Hypothesis& best = output.front();
      const auto tokens = static_cast<int64_t>(best.ids.size());
      const bool ended = tokens < session.max_length();
      best.score = ScoreOf(best.log_probability, tokens + ended, alpha_);
    }
    return outputs;
  }

 private:
  std::unique_ptr<Strategy> greedy_;
  double alpha_;
};

}  // namespace

// A beam of 1 is greedy decoding, as in T5, but for the score.
std::unique_ptr<Strategy> strategy_beam(const DecodingConfig& config) {
  if (config.beam().size() == 1) return std::make_unique<BeamOfOne>(config);
  return std::make_unique<Beam>(config);
}

}  // namespace syntra
