// SPDX-License-Identifier: Apache-2.0
// The contract of all mixers, for every configuration of mixer_trial.cc.
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/tested.h"
#include "mixers/mixer_cases.h"
#include "mixers/mixer_trial.h"
#include "program/finite_differences.h"

namespace syntra {
namespace {

// One row packed with two segments, one padded; and the same without the packing.
const std::vector<int32_t> kPacked = {1, 1, 1, 2, 2, 2, 2, 1, 1, 1, 1, 1, 0, 0};
const std::vector<int32_t> kPadded = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0};
// Where the prefixes of the packed rows end.
const std::vector<int32_t> kPrefixEnds = {2, 2, 0, 6, 6, 6, 0, 4, 4, 4, 4, 0, 0, 0};

// Each mixer is asked what its traits claim.
class MixerContract : public testing::TestWithParam<MixerCase> {
 protected:
  MixerSetting Setting(bool causal) const { return {.config = config_, .causal = causal}; }
  // The most that it claims: causal, with two segments in a row.
  MixerSetting FullSetting() const {
    MixerSetting setting = Setting(traits_.causal);
    setting.segments = segments();
    return setting;
  }
  // Causal, but for the first `length` of seven positions.
  MixerSetting WithPrefix(int32_t length) const {
    MixerSetting setting = Setting(true);
    for (int64_t i = 0; i < 14; ++i) setting.prefix_ends.push_back(i % 7 < length ? length : 0);
    return setting;
  }
  // Packed rows with a prefix in each segment.
  MixerSetting PackedPrefixes() const {
    MixerSetting setting = Setting(true);
    setting.segments = kPacked;
    setting.prefix_ends = kPrefixEnds;
    return setting;
  }
  std::vector<bool> causal_modes() const {
    return traits_.causal ? std::vector<bool>{false, true} : std::vector<bool>{false};
  }
  // Rounding where the order of a sum may differ.
  static double Slack(Backend& backend) {
    return std::max(IsReference(backend) ? 1e-12 : 2e-6, GetParam().rounding);
  }
  const std::vector<int32_t>& segments() const {
    return traits_.packed_rows == PackedRows::kLeaks ? kPadded : kPacked;
  }
  const MixerConfig config_ = ConfigOf(GetParam());
  const MixerTraits traits_ = MakeMixer(config_)->traits();
};

// Rows [begin, end) of one example.
template <typename T>
std::vector<T> Rows(const std::vector<T>& x, int64_t length, int64_t example, int64_t begin,
                    int64_t end) {
  const auto first = x.begin() + (example * length + begin) * kTrialWidth;
  return {first, first + (end - begin) * kTrialWidth};
}

TEST_P(MixerContract, GradientsAgreeWithCentralDifferences) {
  for (const bool causal : causal_modes()) {
    MixerSetting setting = Setting(causal);
    if (causal || !traits_.causal) setting.segments = segments();
    MixerTrial trial(setting, ReferenceBackend());
    ExpectGradients(trial.executable(), trial.memory(), trial.parameters());
  }
  if (!traits_.bidirectional_prefix) return;
  MixerTrial trial(PackedPrefixes(), ReferenceBackend());
  ExpectGradients(trial.executable(), trial.memory(), trial.parameters());
}

// A prefix is what it would be alone and without causality; what is after it is causal.
TEST_P(MixerContract, PrefixesReadThemselvesInBothDirections) {
  if (!traits_.bidirectional_prefix) GTEST_SKIP() << "it reads prefixes from left to right";
  for (Backend& backend : Backends()) {
    MixerSetting setting = WithPrefix(4);
    setting.x = RandomRows(2, 7);
    const std::vector<double> y = OutputOf(setting, backend);
    MixerSetting alone = Setting(false);
    alone.length = 4;
    for (int64_t b = 0; b < 2; ++b) {
      const std::vector<float> rows = Rows(setting.x, 7, b, 0, 4);
      alone.x.insert(alone.x.end(), rows.begin(), rows.end());
    }
    const std::vector<double> prefix = OutputOf(alone, backend);
    MixerSetting other = setting;
    for (int64_t i = 5 * kTrialWidth; i < 7 * kTrialWidth; ++i) other.x[i] += 3;
    const std::vector<double> moved = OutputOf(other, backend);
    for (int64_t b = 0; b < 2; ++b) {
      EXPECT_LT(LargestError(Rows(y, 7, b, 0, 4), Rows(prefix, 4, b, 0, 4)), Slack(backend));
      EXPECT_EQ(Rows(moved, 7, b, 0, 5), Rows(y, 7, b, 0, 5));
    }
    MixerSetting whole = WithPrefix(7), all = Setting(false);
    whole.x = all.x = setting.x;
    EXPECT_LT(LargestError(OutputOf(whole, backend), OutputOf(all, backend)), Slack(backend));
  }
}

TEST_P(MixerContract, PrefixesOfARowAreIndependent) {
  if (!traits_.bidirectional_prefix) GTEST_SKIP() << "it reads prefixes from left to right";
  for (Backend& backend : Backends()) {
    MixerSetting setting = PackedPrefixes();
    setting.x = RandomRows(2, 7);
    const std::vector<double> y = OutputOf(setting, backend);
    MixerSetting other = setting;
    for (int64_t i = 3 * kTrialWidth; i < 7 * kTrialWidth; ++i) other.x[i] += 3;
    EXPECT_EQ(Rows(OutputOf(other, backend), 7, 0, 0, 3), Rows(y, 7, 0, 0, 3));
  }
}

TEST_P(MixerContract, LaterPositionsNeverChangeEarlierOutputs) {
  if (!traits_.causal) GTEST_SKIP() << "it is not causal";
  for (Backend& backend : Backends()) {
    const double tolerance = !GetParam().sorts ? 0 : IsReference(backend) ? 1e-12 : 1e-6;
    MixerSetting setting = Setting(true);
    setting.x = RandomRows(2, 7);
    const std::vector<double> y = OutputOf(setting, backend);
    bool any_moves = false;
    for (const int64_t changed : {1, 4, 6}) {
      MixerSetting other = setting;
      for (int64_t b = 0; b < 2; ++b) {
        for (int64_t d = 0; d < kTrialWidth; ++d) other.x[(b * 7 + changed) * kTrialWidth + d] += 3;
      }
      const std::vector<double> moved = OutputOf(other, backend);
      for (int64_t b = 0; b < 2; ++b) {
        const std::vector<double> before = Rows(y, 7, b, 0, changed);
        EXPECT_LE(LargestDifference(Rows(moved, 7, b, 0, changed), before), tolerance) << changed;
        const bool moves =
            Rows(moved, 7, b, changed, changed + 1) != Rows(y, 7, b, changed, changed + 1);
        // Where a bucket has one other position, that one is all that a position reads.
        EXPECT_TRUE(moves || GetParam().sorts) << changed << ", " << backend.name();
        any_moves = any_moves || moves;
      }
    }
    EXPECT_TRUE(any_moves) << backend.name();
  }
}

TEST_P(MixerContract, WithoutCausalityEveryPositionWithinReachCounts) {
  const int64_t reach = std::min<int64_t>(GetParam().reach, 6);
  MixerSetting setting = Setting(false);
  setting.x = RandomRows(2, 7);
  const auto first = [&] { return Rows(OutputOf(setting), 7, 0, 0, 1); };
  const std::vector<double> y = first();
  for (int64_t i = (reach + 1) * kTrialWidth; i < 7 * kTrialWidth; ++i) setting.x[i] += 3;
  EXPECT_EQ(first(), y) << "MixerCase::reach says how far the first position reads";
  setting.x[reach * kTrialWidth] += 3;
  EXPECT_NE(first(), y) << "MixerCase::reach says how far the first position reads";
}

// Also: sequences shorter than the tables use their top-left block.
TEST_P(MixerContract, PaddingChangesNothing) {
  for (const bool causal : causal_modes()) {
    for (Backend& backend : Backends()) {
      MixerSetting longer = Setting(causal), shorter = Setting(causal);
      longer.x = RandomRows(2, 7);
      longer.segments = {1, 1, 1, 1, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0};
      shorter.length = 4;
      for (int64_t b = 0; b < 2; ++b) {
        const std::vector<float> rows = Rows(longer.x, 7, b, 0, 4);
        shorter.x.insert(shorter.x.end(), rows.begin(), rows.end());
      }
      MixerSetting other = longer;
      for (int64_t i = 4 * kTrialWidth; i < 7 * kTrialWidth; ++i) other.x[i] += 5;
      const std::vector<double> y = OutputOf(longer, backend), cut = OutputOf(shorter, backend),
                                moved = OutputOf(other, backend);
      for (int64_t b = 0; b < 2; ++b) {
        const std::vector<double> kept = Rows(y, 7, b, 0, 4);
        EXPECT_EQ(Rows(moved, 7, b, 0, 4), kept);
        EXPECT_LT(LargestError(kept, Rows(cut, 4, b, 0, 4)), Slack(backend));
      }
    }
  }
}

TEST_P(MixerContract, ExamplesAreIndependent) {
  for (Backend& backend : Backends()) {
    MixerSetting both = Setting(false);
    both.x = RandomRows(2, 7);
    both.segments = segments();
    const std::vector<double> y = OutputOf(both, backend);
    for (int64_t b = 0; b < 2; ++b) {
      MixerSetting alone = Setting(false);
      alone.batch = 1;
      alone.x = Rows(both.x, 7, b, 0, 7);
      alone.segments = {segments().begin() + b * 7, segments().begin() + (b + 1) * 7};
      const int64_t real = b == 0 ? 7 : 5;
      EXPECT_LT(LargestError(Rows(OutputOf(alone, backend), 7, 0, 0, real), Rows(y, 7, b, 0, real)),
                Slack(backend));
    }
  }
}

// A mixer that says so depends on where in a row an example lies, and others do not.
TEST_P(MixerContract, SegmentsOfARowAreIndependent) {
  if (traits_.packed_rows == PackedRows::kLeaks) GTEST_SKIP() << "its rows are not packed";
  double moved = 0;  // the most that an example differs in a row of its own
  for (const bool causal : causal_modes()) {
    for (Backend& backend : Backends()) {
      MixerSetting setting = Setting(causal);
      setting.x = RandomRows(2, 7);
      setting.segments = segments();
      const std::vector<double> y = OutputOf(setting, backend);
      MixerSetting other = setting;
      for (int64_t i = 3 * kTrialWidth; i < 7 * kTrialWidth; ++i) other.x[i] += 3;
      EXPECT_EQ(Rows(OutputOf(other, backend), 7, 0, 0, 3), Rows(y, 7, 0, 0, 3));
      for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, 3}, {3, 7}}) {
        MixerSetting alone = Setting(causal);
        alone.batch = 1;
        alone.length = end - begin;
        alone.x = Rows(setting.x, 7, 0, begin, end);
        const double error = LargestError(OutputOf(alone, backend), Rows(y, 7, 0, begin, end));
        EXPECT_TRUE(traits_.packed_rows != PackedRows::kExact || error < Slack(backend)) << error;
        moved = std::max(moved, error);
      }
    }
  }
  EXPECT_EQ(moved > 1e-3, traits_.packed_rows == PackedRows::kIndependent && !GetParam().any_place);
}

TEST_P(MixerContract, StepDecodingIsFullDecodingRowByRow) {
  if (!traits_.causal) GTEST_SKIP() << "it is not causal";
  if (!traits_.not_incremental.empty()) GTEST_SKIP() << traits_.not_incremental;
  for (Backend& backend : Backends()) {
    const MixerSetting setting = Setting(true);
    EXPECT_LT(LargestError(DecodeRows(setting, backend), OutputOf(setting, backend)),
              Slack(backend));
  }
  MixerSetting narrow = Setting(true);
  narrow.activations = DType::kBF16;
  EXPECT_LT(LargestError(DecodeRows(narrow, FastBackend()), OutputOf(narrow, FastBackend())),
            0x1p-6);
}

// However many positions are read at once, those after them are what they are by steps alone.
TEST_P(MixerContract, PrefilledRowsAreThoseOfFullDecoding) {
  if (!traits_.prefills) GTEST_SKIP() << "it reads one position at a time";
  if (!traits_.not_incremental.empty()) GTEST_SKIP() << traits_.not_incremental;
  for (Backend& backend : Backends()) {
    const MixerSetting setting = Setting(true);
    const std::vector<double> full = OutputOf(setting, backend);
    for (const int32_t prefilled : {1, 4, 7}) {
      EXPECT_LT(LargestError(DecodeRows(setting, backend, prefilled), full), Slack(backend));
      if (!traits_.bidirectional_prefix) continue;
      const MixerSetting prefix = WithPrefix(prefilled);
      EXPECT_LT(LargestError(DecodeRows(prefix, backend, prefilled), OutputOf(prefix, backend)),
                Slack(backend));
    }
  }
}

TEST_P(MixerContract, RecomputedIsStored) {
  for (Backend& backend : Backends()) {
    MixerSetting setting = FullSetting();
    MixerTrial stored(setting, backend);
    setting.recompute = true;
    MixerTrial recomputed(setting, backend);
    stored.Run();
    recomputed.Run();
    EXPECT_EQ(stored.Y(), recomputed.Y());
    EXPECT_EQ(stored.Gradients(), recomputed.Gradients());
    EXPECT_GT(recomputed.executable().program().instructions.size(),
              stored.executable().program().instructions.size());
  }
}

TEST_P(MixerContract, NothingReadsWhatIsDead) {
  for (const DType activations : {DType::kF32, DType::kBF16}) {
    MixerSetting setting = FullSetting();
    setting.activations = activations;
    MixerTrial plain(setting, CpuBackend());
    MixerTrial painted(setting, CpuBackend(), TransientMemory::kPainted);
    plain.Run();
    painted.Run();
    EXPECT_EQ(plain.Gradients(), painted.Gradients());
  }
}

// Outputs and gradients under one name; padding rows of y do not count.
std::map<std::string, std::vector<double>> Everything(MixerTrial& trial) {
  trial.Run();
  std::map<std::string, std::vector<double>> all = trial.Gradients();
  all["y"] = trial.Y();
  std::fill(all["y"].end() - 2 * kTrialWidth, all["y"].end(), 0.0);
  return all;
}

TEST_P(MixerContract, BackendsAgree) {
  for (const bool causal : causal_modes()) {
    MixerSetting setting = Setting(causal);
    setting.segments = segments();
    MixerTrial reference(setting, ReferenceBackend()), cpu(setting, FastBackend());
    const auto truth = Everything(reference);
    double largest = 0;  // of all gradients
    for (const auto& [name, exact] : truth) {
      if (name != "y") largest = std::max(largest, LargestOf(exact));
    }
    for (const auto& [name, found] : Everything(cpu)) {
      const std::vector<double>& exact = truth.at(name);
      if (name == "gate") {
        // A sum over all scores, which nearly cancel: its error is measured by what is added.
        EXPECT_LT(LargestDifference(found, exact), 5e-7 * largest) << name;
      } else {
        // A gradient goes through more sums than an output.
        EXPECT_LT(LargestError(found, exact), name == "y" ? 2e-6 : 1e-5) << name;
      }
    }
  }
}

// The gradient of a gate is one number, which may nearly vanish in one draw: errors and sizes are
// those of several draws together.
TEST_P(MixerContract, BackendsAgreeOnPrefixes) {
  if (!traits_.bidirectional_prefix) GTEST_SKIP() << "it reads prefixes from left to right";
  struct Sizes {
    double error = 0, exact = 0;
  };
  std::map<std::string, Sizes> squares;
  for (int draw = 0; draw < 4; ++draw) {
    MixerSetting setting = PackedPrefixes();
    setting.x = RandomRows(2, 7, "draw " + std::to_string(draw));
    MixerTrial reference(setting, ReferenceBackend()), fast(setting, FastBackend());
    const auto truth = Everything(reference);
    for (const auto& [name, found] : Everything(fast)) {
      squares[name].error += std::pow(DistanceOf(found, truth.at(name)), 2);
      squares[name].exact += std::pow(Norm(truth.at(name)), 2);
    }
  }
  for (const auto& [name, sums] : squares) {
    const double tolerance = name == "y" ? 2e-6 : 1e-5;
    EXPECT_LE(std::sqrt(sums.error), tolerance * std::sqrt(sums.exact)) << name;
  }
}

// The forward and backward pass with every tensor rounded to its type after each op, and operands
// of bf16 products rounded before.
std::map<std::string, std::vector<double>> NaiveBFloat16(MixerTrial& trial) {
  const Program& program = trial.executable().program();
  std::vector<std::vector<std::byte>> values(program.values.size());
  const auto view = [&](Value v) { return TensorView{values[v.id].data(), program.info(v).type}; };
  for (size_t i = 0; i < values.size(); ++i) {
    const ValueInfo& info = program.values[i];
    values[i].resize(info.type.bytes());
    const TensorView to = view({static_cast<int>(i)});
    if (info.kind == ValueKind::kConstant) {
      if (const auto* list = std::get_if<std::vector<float>>(&info.constant)) {
        std::ranges::copy(*list, to.As<float>().begin());
      } else if (const auto* rows = std::get_if<std::vector<int32_t>>(&info.constant)) {
        std::ranges::copy(*rows, to.As<int32_t>().begin());
      } else {
        std::ranges::fill(to.As<float>(), std::get<double>(info.constant));
      }
    }
    if (info.kind == ValueKind::kInput) {
      std::memcpy(to.data, trial.executable().Tensor(info.name).data, info.type.bytes());
    }
    if (info.kind == ValueKind::kParameter) {
      std::ranges::copy(trial.memory().ParameterValues(trial.parameters().Get(info.name)),
                        to.As<float>().begin());
    }
  }
  for (const Instruction& instruction : program.instructions) {
    const bool narrow = std::ranges::any_of(
        instruction.call.inputs, [](const TensorType& type) { return type.dtype == DType::kBF16; });
    const bool products = instruction.op->name.find("matmul") != std::string::npos;
    std::vector<std::vector<float>> rounded(instruction.inputs.size());
    std::vector<void*> inputs, outputs;
    std::vector<std::vector<std::byte>> sums(instruction.outputs.size());
    for (size_t i = 0; i < instruction.inputs.size(); ++i) {
      inputs.push_back(instruction.inputs[i] ? values[instruction.inputs[i].id].data() : nullptr);
      const bool positions = instruction.op->name.starts_with("attention") && i == 4;
      if (!narrow || !(products || positions) || instruction.call.inputs[i].dtype != DType::kF32)
        continue;
      for (const float value : view(instruction.inputs[i]).As<float>()) {
        rounded[i].push_back(ToFloat(ToBFloat16(value)));
      }
      inputs[i] = rounded[i].data();
    }
    for (size_t i = 0; i < instruction.outputs.size(); ++i) {
      if (instruction.outputs[i]) sums[i] = values[instruction.outputs[i].id];
      outputs.push_back(instruction.outputs[i] ? values[instruction.outputs[i].id].data()
                                               : nullptr);
    }
    BindReferenceOnHost(*instruction.op, instruction.call).run({inputs, outputs, nullptr});
    for (size_t i = 0; i < instruction.outputs.size(); ++i) {
      if (!instruction.outputs[i] || !instruction.call.accumulate[i]) continue;
      const TensorView to = view(instruction.outputs[i]);
      for (int64_t k = 0; k < to.type.shape.size(); ++k) {
        if (to.type.dtype == DType::kF32) {
          to.As<float>()[k] += reinterpret_cast<const float*>(sums[i].data())[k];
        } else {
          const BFloat16 before = reinterpret_cast<const BFloat16*>(sums[i].data())[k];
          to.As<BFloat16>()[k] = ToBFloat16(ToFloat(to.As<BFloat16>()[k]) + ToFloat(before));
        }
      }
    }
  }
  std::map<std::string, std::vector<double>> all;
  for (size_t i = 0; i < values.size(); ++i) {
    const ValueInfo& info = program.values[i];
    if (info.kind != ValueKind::kGradient) continue;
    all[info.name.substr(info.name.find(':') + 1)] = Numbers(view({static_cast<int>(i)}));
  }
  all["y"] = Numbers(view(program.outputs.at("y")));
  std::fill(all["y"].end() - 2 * kTrialWidth, all["y"].end(), 0.0);
  return all;
}

// Errors of one draw of a few numbers are luck: their squares are added over many.
TEST_P(MixerContract, BFloat16IsAtMostTwiceAsFarFromTheTruthAsRoundingBetweenOps) {
  struct Errors {
    double found = 0, naive = 0;
  };
  std::map<std::string, Errors> errors;
  for (int draw = 0; draw < 8; ++draw) {
    MixerSetting setting = FullSetting();
    setting.x = RandomRows(2, 7, "draw " + std::to_string(draw));
    MixerTrial reference(setting, ReferenceBackend());
    setting.activations = DType::kBF16;
    MixerTrial narrow(setting, FastBackend());
    const auto found = Everything(narrow), naive = NaiveBFloat16(narrow);
    for (const auto& [name, exact] : Everything(reference)) {
      errors[name].found += std::pow(DistanceOf(found.at(name), exact), 2);
      errors[name].naive += std::pow(DistanceOf(naive.at(name), exact), 2);
    }
  }
  for (const auto& [name, error] : errors) {
    EXPECT_LE(std::sqrt(error.found), 2 * std::sqrt(error.naive)) << name;
  }
}

// Scores may lie far from zero, and a row may hold nothing but padding.
TEST_P(MixerContract, IsFiniteWhateverItReads) {
  for (const bool causal : causal_modes()) {
    for (const bool padding : {false, true}) {
      MixerSetting setting = Setting(causal);
      setting.x = RandomRows(2, 7);
      for (float& x : setting.x) x *= 100;
      if (padding) setting.segments = {1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0};
      MixerTrial trial(setting, FastBackend());
      for (const auto& [name, values] : Everything(trial)) {
        EXPECT_TRUE(std::ranges::all_of(values, [](double x) { return std::isfinite(x); })) << name;
      }
    }
  }
}

// What it draws in training is a function of the row's key, wherever the row lies.
TEST_P(MixerContract, DrawsRandomNumbersIfItSaysSo) {
  for (const bool causal : causal_modes()) {
    for (Backend& backend : Backends()) {
      MixerSetting evaluated = Setting(causal);
      evaluated.x = RandomRows(2, 7);
      MixerSetting trained = evaluated;
      trained.keys = {5, 9, 7, 9};
      const std::vector<double> y = OutputOf(trained, backend);
      EXPECT_EQ(OutputOf(evaluated, backend) != y, traits_.stochastic);
      if (!traits_.stochastic) continue;
      EXPECT_EQ(OutputOf(trained, backend), y);
      MixerSetting other = trained;
      other.keys = {6, 9, 7, 9};
      const std::vector<double> changed = OutputOf(other, backend);
      EXPECT_NE(Rows(changed, 7, 0, 0, 7), Rows(y, 7, 0, 0, 7));
      EXPECT_EQ(Rows(changed, 7, 1, 0, 7), Rows(y, 7, 1, 0, 7));
      MixerSetting swapped = trained;
      swapped.keys = {7, 9, 5, 9};
      std::rotate(swapped.x.begin(), swapped.x.begin() + std::ssize(swapped.x) / 2,
                  swapped.x.end());
      const std::vector<double> found = OutputOf(swapped, backend);
      for (int64_t b = 0; b < 2; ++b) EXPECT_EQ(Rows(found, 7, 1 - b, 0, 7), Rows(y, 7, b, 0, 7));
    }
  }
}

TEST_P(MixerContract, TraitsTellTheLongestSequence) {
  MixerSetting setting = Setting(false);
  setting.length = 2 * kTrialTable;
  for (const auto& each : traits_.limits) setting.length = std::min(setting.length, each.length);
  EXPECT_NO_THROW(MixerTrial(setting, ReferenceBackend()));
  // With positions only the data say which entries are used.
  if (traits_.limits.empty() || traits_.reads_positions) return;
  EXPECT_EQ(setting.length, kTrialTable);
  ++setting.length;
  EXPECT_THROW(MixerTrial(setting, ReferenceBackend()), Error);
}

INSTANTIATE_TEST_SUITE_P(Mixers, MixerContract, testing::ValuesIn(MixerCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace syntra
