// SPDX-License-Identifier: Apache-2.0
// Compares the kernel of every case of every op with the double-precision reference on the same
// rounded inputs. Also tests accumulation, memory beside operands, absent outputs and
// repeatability.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/buffer.h"
#include "kernels/attention_call.h"
#include "kernels/bfloat16.h"
#include "tests/kernels/tested.h"
#include "tests/kernels/trials.h"

namespace syntra {
namespace {

constexpr uint64_t kSeed = 20;
// All ones: NaN as f32 and as bf16, so that reading what nobody wrote shows in the results.
constexpr auto kPattern = std::byte{0xFF};
constexpr size_t kGuard = kTestedGuard;

// Memory between guards.
class GuardedMemory {
 public:
  explicit GuardedMemory(size_t bytes)
      : bytes_(bytes), buffer_(kGuard + bytes + kGuard, "a test operand") {
    std::fill_n(buffer_.data(), buffer_.size(), kPattern);
  }

  std::byte* data() const { return buffer_.data() + kGuard; }
  size_t size() const { return bytes_; }

  bool GuardsIntact() const {
    const auto intact = [](std::byte b) { return b == kPattern; };
    return std::all_of(buffer_.data(), data(), intact) &&
           std::all_of(data() + bytes_, buffer_.data() + buffer_.size(), intact);
  }

 private:
  size_t bytes_;
  Buffer buffer_;
};

// The inputs or the outputs of a call in guarded memory. Columns have guards at their sides, except
// those that lie side by side.
class Operands {
 public:
  // `together`: which of them lie side by side, if they have a pitch.
  Operands(const std::vector<TensorType>& types, size_t first_together, size_t count_together) {
    for (size_t i = 0; i < types.size(); ++i) {
      const TensorType& type = types[i];
      if (!type.present()) {
        places_.push_back({type, nullptr, nullptr});
        continue;
      }
      const bool together = i >= first_together && i < first_together + count_together;
      const size_t element = SizeOf(type.dtype);
      if (type.pitch > 0 && together && i > first_together) {
        const Place& before = places_.back();
        places_.push_back({type, before.memory, before.data + before.type.shape[-1] * element});
        continue;
      }
      const size_t rows = type.pitch > 0 ? type.shape.rows() * type.pitch : type.shape.size();
      auto memory = std::make_shared<GuardedMemory>(rows * element);
      std::byte* data = memory->data() + (type.pitch > 0 && !together ? kBefore * element : 0);
      places_.push_back({type, std::move(memory), data});
    }
  }

  static constexpr int64_t kBefore = 8, kBeside = 24;  // columns before an operand's, and in all

  std::vector<void*> pointers() const {
    std::vector<void*> all;
    for (const Place& place : places_) all.push_back(place.data);
    return all;
  }

  void Set(size_t i, const std::vector<std::byte>& contents) {
    ForRows(i, [&](std::byte* row, size_t bytes, size_t n) {
      std::copy_n(contents.data() + n * bytes, bytes, row);
    });
  }
  // The elements of an operand, without gaps.
  std::vector<std::byte> Contents(size_t i) const {
    std::vector<std::byte> contents;
    ForRows(i, [&](const std::byte* row, size_t bytes, size_t) {
      contents.insert(contents.end(), row, row + bytes);
    });
    return contents;
  }
  // Whether nothing was written beside operand i. Overwrites the operand.
  bool Intact(size_t i) {
    if (!places_[i].memory) return true;
    for (size_t j = 0; j < places_.size(); ++j) {
      if (places_[j].memory != places_[i].memory) continue;
      ForRows(j, [](std::byte* row, size_t bytes, size_t) { std::fill_n(row, bytes, kPattern); });
    }
    const GuardedMemory& memory = *places_[i].memory;
    return memory.GuardsIntact() && std::all_of(memory.data(), memory.data() + memory.size(),
                                                [](std::byte b) { return b == kPattern; });
  }

 private:
  struct Place {
    TensorType type;
    std::shared_ptr<GuardedMemory> memory;
    std::byte* data;
  };

  template <typename Body>
  void ForRows(size_t i, const Body& body) const {
    const auto& [type, memory, data] = places_[i];
    if (!memory) return;
    const size_t rows = type.pitch > 0 ? type.shape.rows() : 1, element = SizeOf(type.dtype);
    for (size_t row = 0; row < rows; ++row) {
      body(data + row * type.pitch * element, type.shape.size() / rows * element, row);
    }
  }

  std::vector<Place> places_;
};

// The call with columns for operands, where the op takes them; nullopt where not.
std::optional<OpCall> AsColumns(const Op& op, const OpCall& call) {
  OpCall wide = call;
  bool any = false;
  const auto fits = [](const TensorType& t) { return t.present() && t.shape[-1] % 8 == 0; };
  const OperandSet taken = op.takes_columns ? op.takes_columns(call) : OperandSet{};
  const auto widen = [&](std::vector<TensorType>& types, uint64_t set) {
    for (size_t i = 0; i < types.size() && i < 64; ++i) {
      if ((set >> i & 1) == 0 || !fits(types[i])) continue;
      types[i].pitch = types[i].shape[-1] + Operands::kBeside;
      any = true;
    }
  };
  widen(wide.inputs, taken.inputs);
  widen(wide.outputs, taken.outputs);
  if (op.side_by_side) {
    const auto [of_outputs, first, count] = op.side_by_side(call);
    const std::span all((of_outputs ? wide.outputs : wide.inputs).data() + first, count);
    if (count > 1 && std::ranges::all_of(all, fits)) {
      int64_t columns = 0;
      for (const TensorType& type : all) columns += type.shape[-1];
      for (TensorType& type : all) type.pitch = columns;
      any = true;
    }
  }
  return any ? std::optional(wide) : std::nullopt;
}

// The elements of a tensor as they are stored.
std::vector<std::byte> Stored(const CaseTensor& tensor) {
  const DType dtype = tensor.type.dtype;
  std::vector<std::byte> contents(tensor.type.present() ? tensor.type.bytes() : 0);
  std::byte* to = contents.data();
  if (dtype == DType::kI32) std::memcpy(to, tensor.integers.data(), tensor.type.bytes());
  for (size_t i = 0; i < tensor.numbers.size(); ++i) {
    const auto value = static_cast<float>(tensor.numbers[i]);
    if (dtype == DType::kF32) reinterpret_cast<float*>(to)[i] = value;
    if (dtype == DType::kBF16) reinterpret_cast<BFloat16*>(to)[i] = ToBFloat16(value);
  }
  return contents;
}

CaseTensor Load(const TensorType& type, const std::vector<std::byte>& from) {
  CaseTensor tensor = MakeTensor({type.dtype, type.shape});
  if (type.dtype == DType::kI32) std::memcpy(tensor.integers.data(), from.data(), from.size());
  for (size_t i = 0; i < tensor.numbers.size(); ++i) {
    if (type.dtype == DType::kF32) {
      tensor.numbers[i] = reinterpret_cast<const float*>(from.data())[i];
    } else {
      tensor.numbers[i] = ToFloat(reinterpret_cast<const BFloat16*>(from.data())[i]);
    }
  }
  return tensor;
}

using Contents = std::vector<std::vector<std::byte>>;

// The outputs of a kernel that starts from `outputs` where it reads them and from NaN where not.
Contents RunGuarded(const BoundKernel& kernel, const Op& op, const OpCall& call,
                    const std::vector<CaseTensor>& inputs, const std::vector<CaseTensor>& outputs,
                    bool reads_outputs) {
  const OperandRange together = op.side_by_side ? op.side_by_side(call) : OperandRange{};
  Operands read(call.inputs, together.first, together.of_outputs ? 0 : together.count);
  Operands written(call.outputs, together.first, together.of_outputs ? together.count : 0);
  for (size_t i = 0; i < inputs.size(); ++i) read.Set(i, Stored(inputs[i]));
  for (size_t i = 0; reads_outputs && i < call.outputs.size(); ++i) {
    written.Set(i, Stored(outputs[i]));
  }
  const GuardedMemory workspace(kernel.workspace_bytes);
  const std::vector<void*> from = read.pointers(), to = written.pointers();
  kernel.run({from, to, workspace.data()});

  EXPECT_EQ(TakeComplaints(), "");
  EXPECT_TRUE(workspace.GuardsIntact()) << "wrote outside the workspace";
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].type.present()) continue;
    EXPECT_EQ(read.Contents(i), Stored(inputs[i])) << "changed input " << i;
  }
  Contents contents;
  for (size_t i = 0; i < call.outputs.size(); ++i) contents.push_back(written.Contents(i));
  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_TRUE(read.Intact(i)) << "wrote beside input " << i;
  }
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    EXPECT_TRUE(written.Intact(i)) << "wrote beside output " << i;
  }
  return contents;
}

// How far a kernel may be from the reference.
struct Tolerance {
  double norm;      // of the error, relative to the norm of the result
  double element;   // of an element's error, relative to the element
  double absolute;  // and on top, relative to the largest element
};

// Kernels of these ops round probabilities or their gradients to bf16 between two products.
bool ChainsProducts(const std::string& op) {
  return op.starts_with("attention") || op == "linear_cross_entropy_grad";
}

int64_t MostElements(const std::vector<TensorType>& tensors) {
  int64_t most = 0;
  for (const TensorType& tensor : tensors) {
    if (tensor.present()) most = std::max(most, tensor.shape.size());
  }
  return most;
}

Tolerance ToleranceOf(const Op& op, const OpCall& call, const TensorType& output) {
  const bool bf16 = std::ranges::any_of(
      call.inputs, [](const TensorType& input) { return input.dtype == DType::kBF16; });
  const double terms =
      static_cast<double>(MostElements(call.inputs)) / static_cast<double>(output.shape.size());
  const double single = 2e-6 * std::clamp(std::sqrt(terms), 1.0, 8.0);
  if (bf16 && ChainsProducts(op.name)) return {0x1p-6, 0x1p-6, 0x1p-6};
  // The norm is taken of the sum as it is stored: two roundings.
  if (output.dtype == DType::kBF16 && op.name == "add_norm") return {0x1p-8, 0x1.02p-7, single};
  if (output.dtype == DType::kBF16) return {0x1p-8, 0x1.02p-8, single};
  return {single, 0.0, 4 * single};
}

void ExpectClose(const CaseTensor& got, const CaseTensor& want, const Tolerance& tolerance,
                 const std::string& what) {
  EXPECT_EQ(got.integers, want.integers) << what;
  double largest = 0.0, squares = 0.0, error_squares = 0.0;
  for (double number : want.numbers) largest = std::max(largest, std::abs(number));
  for (size_t i = 0; i < want.numbers.size(); ++i) {
    // Nothing allowed in an attention row: both sides are -inf.
    if (std::isinf(want.numbers[i]) && got.numbers[i] == want.numbers[i]) continue;
    const double error = std::abs(got.numbers[i] - want.numbers[i]);
    ASSERT_LE(error,
              tolerance.element * std::abs(want.numbers[i]) + tolerance.absolute * largest + 1e-37)
        << what << "[" << i << "] is " << got.numbers[i] << ", not " << want.numbers[i];
    squares += want.numbers[i] * want.numbers[i];
    error_squares += error * error;
  }
  EXPECT_LE(std::sqrt(error_squares), tolerance.norm * std::sqrt(squares) + 1e-37) << what;
}

class KernelSweep : public testing::TestWithParam<SweepCase> {
 protected:
  KernelSweep()
      : trial_(MakeTrial(GetParam(), kSeed)),
        op_(trial_.op),
        call_(trial_.call),
        inputs_(trial_.inputs),
        before_(trial_.outputs),
        want_(before_) {}
  void SetUp() override {
    if (!BindTested(op_, call_)) GTEST_SKIP() << "no " << FastBackend().name() << " kernel";
    op_.reference(call_, Views(inputs_), Views(want_));
  }

  // Binds anew: sizes may depend on the number of threads.
  Contents RunWith(const OpCall& call, const std::vector<CaseTensor>& before, bool reads_outputs) {
    const std::optional<BoundKernel> kernel = BindTested(op_, call);
    EXPECT_TRUE(kernel) << "a kernel for all results but none for some";
    if (!kernel) return {};
    return RunGuarded(*kernel, op_, call, inputs_, before, reads_outputs);
  }

  void ExpectResults(const OpCall& call, const Contents& contents) {
    for (size_t i = 0; i < contents.size(); ++i) {
      if (!call.outputs[i].present()) continue;
      ExpectClose(Load(call.outputs[i], contents[i]), want_[i],
                  ToleranceOf(op_, call, call.outputs[i]), "output " + std::to_string(i));
    }
  }

  // Of a call that adds to its outputs.
  void ExpectSums(const BoundKernel& kernel, const OpCall& call) {
    std::vector<CaseTensor> before = before_;
    for (size_t i = 0; i < before.size(); ++i) {
      FillNormal(before[i], kSeed + 300 + i);
      for (size_t j = 0; j < before[i].numbers.size(); ++j) {
        want_[i].numbers[j] += before[i].numbers[j];
      }
    }
    const Contents contents = RunGuarded(kernel, op_, call, inputs_, before, true);
    for (size_t i = 0; i < contents.size(); ++i) {
      if (!call.outputs[i].present()) continue;
      Tolerance tolerance = ToleranceOf(op_, call, call.outputs[i]);
      // A sum may be smaller than its terms, and may be rounded twice.
      if (call.outputs[i].dtype == DType::kBF16) {
        tolerance.absolute = std::max(tolerance.absolute, 0x1p-8);
      }
      tolerance.norm *= 2;
      ExpectClose(Load(call.outputs[i], contents[i]), want_[i], tolerance,
                  "output " + std::to_string(i));
    }
  }

  Trial trial_;
  const Op& op_;
  const OpCall& call_;
  std::vector<CaseTensor>& inputs_;
  const std::vector<CaseTensor>& before_;
  std::vector<CaseTensor> want_;
};

using KernelColumns = KernelSweep;

using KernelInPlace = KernelSweep;

using KernelTypes = KernelSweep;

// The inputs in whose memory output 0 of an elementwise op may lie.
std::vector<size_t> InputsToReplace(const OpCall& call) {
  std::vector<size_t> inputs;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.inputs[i] == call.outputs[0]) inputs.push_back(i);
  }
  return inputs;
}

// The trials whose operands may be columns of wider matrices.
std::vector<SweepCase> TrialsWithColumns() {
  std::vector<SweepCase> trials;
  for (const SweepCase& sweep : AllTrials()) {
    const Op& op = GetOp(sweep.op);
    if (!op.takes_columns && !op.side_by_side) continue;
    const Trial trial = MakeTrial(sweep, kSeed);
    if (AsColumns(trial.op, trial.call)) trials.push_back(sweep);
  }
  return trials;
}

// The trials that are quickly computed for many types of their operands.
std::vector<SweepCase> SmallTrials() {
  std::vector<SweepCase> trials = AllTrials();
  std::erase_if(trials, [](const SweepCase& sweep) {
    return IsSimulated() || MostElements(MakeTrial(sweep, kSeed).call.inputs) > 3000;
  });
  return trials;
}

TEST_P(KernelSweep, AgreesWithTheReferenceHoweverItRuns) {
  const Contents first = RunWith(call_, before_, op_.updates);
  ExpectResults(call_, first);
  InSeveralWays([&](const std::string& way) {
    EXPECT_EQ(RunWith(call_, before_, op_.updates), first) << "with " << way;
  });
}

TEST_P(KernelSweep, AddsToItsOutputs) {
  static const std::set<std::string> contributed = ContributedOps();
  if (op_.updates) GTEST_SKIP() << "updates its outputs";
  OpCall call = call_;
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    call.accumulate[i] = IsFloat(call.outputs[i].dtype);
  }
  const std::optional<BoundKernel> kernel = BindTested(op_, call);
  const bool adds = kernel && kernel->accumulates;
  EXPECT_TRUE(adds || !contributed.contains(op_.name)) << "gradients need its sums";
  if (adds) return ExpectSums(*kernel, call);
  if (!kernel) GTEST_SKIP() << "no kernel for sums";
  // The caller adds, so the kernel only writes.
  ExpectResults(call, RunGuarded(*kernel, op_, call, inputs_, before_, /*reads_outputs=*/false));
}

// Adding to what is there is more than writing, and all kernels that take columns can.
TEST_P(KernelColumns, GetWhatDenseOperandsGet) {
  OpCall call = *AsColumns(op_, call_);
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    call.accumulate[i] = IsFloat(call.outputs[i].dtype);
  }
  ExpectSums(*BindTested(op_, call), call);
}

// The trials of elementwise ops whose result may lie in the memory of an input.
std::vector<SweepCase> TrialsInPlace() {
  std::vector<SweepCase> trials;
  for (const SweepCase& sweep : AllTrials()) {
    if (!GetOp(sweep.op).elementwise) continue;
    const Trial trial = MakeTrial(sweep, kSeed);
    if (!InputsToReplace(trial.call).empty()) trials.push_back(sweep);
  }
  return trials;
}

TEST_P(KernelInPlace, ReplacesAnInputByWhatItWritesElsewhere) {
  const Contents apart = RunWith(call_, before_, false);
  const BoundKernel kernel = *BindTested(op_, call_);
  for (const size_t input : InputsToReplace(call_)) {
    Operands operands(call_.inputs, 0, 0);
    for (size_t i = 0; i < inputs_.size(); ++i) operands.Set(i, Stored(inputs_[i]));
    const GuardedMemory workspace(kernel.workspace_bytes);
    const std::vector<void*> from = operands.pointers();
    kernel.run({from, {&from[input], 1}, workspace.data()});
    EXPECT_EQ(TakeComplaints(), "");
    EXPECT_EQ(operands.Contents(input), apart[0]) << "in place of input " << input;
  }
}

// As few subsets of n results as suffice so that of any two results, each is in one without the
// other: every result is in its own choice of half of k subsets, and no such choice contains
// another (Sperner).
std::set<uint32_t> SeparatingSubsets(size_t n) {
  for (int k = 0;; ++k) {
    std::vector<uint32_t> subsets(k);
    size_t results = 0;
    for (uint32_t choice = 0; choice < 1u << k && results < n; ++choice) {
      if (std::popcount(choice) != k / 2) continue;
      for (int i = 0; i < k; ++i) subsets[i] |= (choice >> i & 1) << results;
      ++results;
    }
    if (results == n) return {subsets.begin(), subsets.end()};
  }
}

// Which subsets of n results to leave out. Where runs are cheap, all of them for few results, and
// else also, by turns, a single one and all but a single one.
std::set<uint32_t> Subsets(size_t n, bool cheap) {
  const uint32_t all = (1u << n) - 1;
  std::set<uint32_t> subsets = SeparatingSubsets(n);
  if (cheap && n <= 4) {
    for (uint32_t subset = 1; subset < all; ++subset) subsets.insert(subset);
  } else if (cheap) {
    for (size_t i = 0; i < n; ++i) subsets.insert(i % 2 == 0 ? 1u << i : all & ~(1u << i));
  }
  return subsets;
}

TEST_P(KernelSweep, LeavesOutWhatNobodyNeeds) {
  if (op_.updates) GTEST_SKIP() << "updates its outputs";
  std::vector<size_t> present;
  for (size_t i = 0; i < call_.outputs.size(); ++i) {
    if (call_.outputs[i].present()) present.push_back(i);
  }
  const bool cheap = MostElements(call_.inputs) < 1000;
  for (uint32_t subset : Subsets(present.size(), cheap)) {
    SCOPED_TRACE("leaving out the set " + std::to_string(subset));
    OpCall call = call_;
    for (size_t n = 0; n < present.size(); ++n) {
      if (subset >> n & 1) call.outputs[present[n]] = {DType::kNone, {}};
    }
    ExpectResults(call, RunWith(call, before_, false));
  }
}

// Types that differ from `type` in one thing: its presence, its element type, its rank, an extent.
std::vector<TensorType> VariantsOf(const TensorType& type) {
  if (!type.present()) return {{DType::kF32, {1}}, {DType::kI32, {1}}};
  std::vector<TensorType> variants = {{DType::kNone, {}}};
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF64, DType::kI32}) {
    if (dtype != type.dtype) variants.push_back({dtype, type.shape});
  }
  const Shape& shape = type.shape;
  variants.push_back({type.dtype, {}});
  if (shape.rank() > 1) variants.push_back({type.dtype, shape.Without(0)});
  std::vector<int64_t> longer = {1};
  longer.insert(longer.end(), shape.dims().begin(), shape.dims().end());
  if (shape.rank() < Shape::kMaxRank) variants.push_back({type.dtype, Shape(longer)});
  for (int axis = 0; axis < shape.rank(); ++axis) {
    variants.push_back({type.dtype, shape.With(axis, shape[axis] + 1)});
  }
  return variants;
}

// A tensor of this type, which repeats the elements of `from`.
CaseTensor Repeated(const CaseTensor& from, const TensorType& type) {
  CaseTensor tensor = MakeTensor(type);
  for (size_t i = 0; i < tensor.numbers.size() && !from.numbers.empty(); ++i) {
    tensor.numbers[i] = Round(from.numbers[i % from.numbers.size()], type.dtype);
  }
  for (size_t i = 0; i < tensor.integers.size() && !from.integers.empty(); ++i) {
    tensor.integers[i] = from.integers[i % from.integers.size()];
  }
  return tensor;
}

// Whether other elements of input i break a contract that no type shows: a gradient of attention is
// given the results of its scores, and a block of queries reads no block twice.
bool NeedsItsElements(const std::string& op, size_t i) {
  return op == "attention_grad" || (op.starts_with("attention") && i == attention::kKeyBlocks);
}

// Each operand in turn has another type than in the trial.
TEST_P(KernelTypes, AreRefusedOrComputed) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    for (const TensorType& variant : VariantsOf(call_.inputs[i])) {
      SCOPED_TRACE("input " + std::to_string(i) + " is " + ToString(variant));
      OpCase changed{"", call_.attributes, call_.inputs, {}};
      changed.inputs[i] = variant;
      std::vector<CaseTensor> inputs = inputs_;
      inputs[i] = Repeated(inputs_[i], variant);
      if (variant.dtype == DType::kBF16) {  // products round all of their operands
        for (CaseTensor& input : inputs) {
          for (double& number : input.numbers) number = Round(number, DType::kBF16);
        }
      }
      OpCall call;
      try {
        call = CaseCall(op_, changed);
      } catch (const Error&) {
        continue;
      }
      if (variant.shape != call_.inputs[i].shape && NeedsItsElements(op_.name, i)) continue;
      const std::vector<CaseTensor> before = want_ = CaseOutputs(op_, changed, kSeed);
      try {
        op_.reference(call, Views(inputs), Views(want_));
      } catch (const Error& error) {  // whether the rows that integers name exist, only a run shows
        const auto is_integer = [](const TensorType& t) { return t.dtype == DType::kI32; };
        EXPECT_TRUE(std::ranges::any_of(call.inputs, is_integer)) << error.what();
        continue;
      }
      const std::optional<BoundKernel> kernel = BindTested(op_, call);
      if (!kernel) continue;
      ExpectResults(call, RunGuarded(*kernel, op_, call, inputs, before, op_.updates));
    }
  }
}

std::string TestName(const testing::TestParamInfo<SweepCase>& info) {
  return info.param.op + "_" + info.param.name;
}

INSTANTIATE_TEST_SUITE_P(AllOps, KernelSweep, testing::ValuesIn(AllTrials()), TestName);
INSTANTIATE_TEST_SUITE_P(AllOps, KernelColumns, testing::ValuesIn(TrialsWithColumns()), TestName);
INSTANTIATE_TEST_SUITE_P(AllOps, KernelInPlace, testing::ValuesIn(TrialsInPlace()), TestName);
INSTANTIATE_TEST_SUITE_P(AllOps, KernelTypes, testing::ValuesIn(SmallTrials()), TestName);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(KernelTypes);  // in simulation

// The failures that `body` reports.
template <typename Body>
std::string FailuresOf(const Body& body) {
  testing::TestPartResultArray failures;
  {
    const testing::ScopedFakeTestPartResultReporter reporter(&failures);
    body();
  }
  std::string messages;
  for (int i = 0; i < failures.size(); ++i) {
    messages += failures.GetTestPartResult(i).message();
  }
  return messages;
}

// A copy of three numbers that then spoils what `spoil` does.
std::string FailuresOfCopy(void (*spoil)(const KernelArguments&)) {
  CaseTensor x = MakeTensor({DType::kF32, {3}});
  FillNormal(x, kSeed);
  const OpCall call{{}, {x.type}, {x.type}, {false}};
  BoundKernel kernel;
  kernel.workspace_bytes = 4;
  kernel.run = [spoil](const KernelArguments& arguments) {
    std::memcpy(arguments.outputs[0], arguments.inputs[0], 3 * sizeof(float));
    spoil(arguments);
  };
  return FailuresOf([&] {
    const Contents contents = RunGuarded(kernel, Op{}, call, {x}, {x}, false);
    ExpectClose(Load(x.type, contents[0]), x, {2e-6, 0.0, 8e-6}, "the copy");
  });
}

TEST(SweepItself, LeavesOutEachOfTwoResultsWithoutTheOther) {
  for (size_t n = 1; n <= 12; ++n) {
    const std::set<uint32_t> subsets = Subsets(n, false);
    for (size_t i = 0; i < n * n; ++i) {
      const size_t out = i / n, wanted = i % n;
      if (out == wanted) continue;
      EXPECT_TRUE(std::ranges::any_of(
          subsets,
          [&](uint32_t subset) { return (subset >> out & 1) == 1 && (subset >> wanted & 1) == 0; }))
          << out << " without " << wanted << " of " << n;
    }
    EXPECT_FALSE(subsets.contains(0));
    EXPECT_FALSE(subsets.contains((1u << n) - 1));
    EXPECT_LE(subsets.size(), 6);
  }
  EXPECT_EQ(Subsets(6, false).size(), 4);
}

TEST(SweepItself, NoticesMistakes) {
  EXPECT_EQ(FailuresOfCopy([](const KernelArguments&) {}), "");
  const auto beside =
      FailuresOfCopy([](const KernelArguments& a) { static_cast<float*>(a.outputs[0])[3] = 0.0f; });
  EXPECT_NE(beside.find("wrote beside output 0"), std::string::npos) << beside;
  const auto input =
      FailuresOfCopy([](const KernelArguments& a) { static_cast<float*>(a.inputs[0])[1] = 7.0f; });
  EXPECT_NE(input.find("changed input 0"), std::string::npos) << input;
  const auto workspace =
      FailuresOfCopy([](const KernelArguments& a) { a.workspace[4] = std::byte{0}; });
  EXPECT_NE(workspace.find("wrote outside the workspace"), std::string::npos) << workspace;
  const auto value = FailuresOfCopy(
      [](const KernelArguments& a) { static_cast<float*>(a.outputs[0])[2] *= 1.0001f; });
  EXPECT_NE(value.find("the copy"), std::string::npos) << value;
  const auto unwritten = FailuresOfCopy([](const KernelArguments& a) {
    static_cast<float*>(a.outputs[0])[0] = static_cast<float*>(a.outputs[0])[3];
  });
  EXPECT_NE(unwritten.find("the copy"), std::string::npos) << unwritten;
}

// The sweep skips a case whose kernel is missing. On CPUs Adafactor has none where the factored
// axes are not the last two, and on GPUs nothing shows weights.
TEST(KernelCoverage, OnlyTheseOpsLackKernels) {
  std::map<std::string, std::set<bool>> have;
  for (const SweepCase& sweep : AllTrials()) {
    const Trial trial = MakeTrial(sweep, kSeed);
    have[sweep.op].insert(BindTested(trial.op, trial.call).has_value());
  }
  std::vector<std::string> lacking;
  for (const auto& [op, answers] : have) {
    if (answers.contains(false)) lacking.push_back(op + (answers.size() == 2 ? " in part" : ""));
  }
  const bool on_host = FastBackend().device().is_host();
  EXPECT_EQ(lacking, std::vector<std::string>{on_host ? "adafactor in part" : "attention_weights"})
      << "ops without a " << FastBackend().name() << " kernel for all of their cases";
}

}  // namespace
}  // namespace syntra
