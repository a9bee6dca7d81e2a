// SPDX-License-Identifier: Apache-2.0
// Compositions of a few ops: their gradients, and how they run in memory, section by section.
#include <gtest/gtest.h>

#include <cmath>

#include "program/buckets.h"
#include "program/compositions.h"
#include "program/finite_differences.h"

namespace syntra {
namespace {

class Compositions : public testing::TestWithParam<Composition> {};

TEST_P(Compositions, GradientsAgreeWithCentralDifferences) {
  Running running(Record(GetParam()));
  ExpectGradients(running.executable, running.memory, running.parameters);
}

TEST_P(Compositions, BackendsAgree) {
  Running reference(Record(GetParam())), cpu(Record(GetParam()), FastBackend());
  reference.executable.RunChecked();
  cpu.executable.RunChecked();
  const double loss = reference.executable.Scalar("loss");
  EXPECT_NEAR(cpu.executable.Scalar("loss"), loss, 1e-5 + 1e-6 * std::abs(loss));
  for (const Parameter& p : reference.parameters.all()) {
    EXPECT_LT(LargestError(cpu.Gradient(p.name), reference.Gradient(p.name)), 4e-6) << p.name;
  }
}

TEST_P(Compositions, GradientsReplaceOrAdd) {
  for (Backend& backend : Backends()) {
    Running running(Record(GetParam()), backend);
    const auto gradients = [&] {
      std::vector<double> all;
      for (const Parameter& p : running.parameters.all()) {
        std::ranges::copy(running.Gradient(p.name), std::back_inserter(all));
      }
      return all;
    };
    running.executable.Run();
    const std::vector<double> once = gradients();
    running.executable.Run();
    const std::vector<double> twice = gradients();
    running.executable.Run(Gradients::kReplace);
    EXPECT_EQ(gradients(), once);
    running.executable.Run(Gradients::kAdd);
    EXPECT_EQ(gradients(), twice);
    EXPECT_NE(once, twice);
  }
}

TEST_P(Compositions, NothingReadsWhatIsDead) {
  for (Backend& backend : Backends()) {
    if (!backend.device().is_host()) continue;
    Running plain(Record(GetParam()), backend);
    Running painted(Record(GetParam()), backend, TransientMemory::kPainted);
    plain.executable.Run();
    painted.executable.RunChecked();
    for (const Parameter& p : plain.parameters.all()) {
      EXPECT_EQ(plain.Gradient(p.name), painted.Gradient(p.name)) << p.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Program, Compositions,
                         testing::Values(Composition{"shared_input", SharedInput},
                                         Composition{"passed_on_then_added", PassedOnThenAdded},
                                         Composition{"tied_embeddings", TiedEmbeddings},
                                         Composition{"parameter_used_twice", ParameterUsedTwice},
                                         Composition{"transient_read_twice", TransientReadTwice},
                                         Composition{"transient_read_thrice",
                                                     TransientReadTwiceAndOnceMore},
                                         Composition{"parameter_read_twice", ParameterReadTwice},
                                         Composition{"attention_to_itself", AttentionToItself},
                                         Composition{"unused_sum", UnusedSum},
                                         Composition{"unused_normed", UnusedNormed},
                                         Composition{"dead_branch", DeadBranch},
                                         Composition{"through_a_region", ThroughARegion}),
                         [](const auto& info) { return std::string(info.param.name); });

// Each bucket of the arena holds its last values once its section has run.
TEST_P(Compositions, BucketsAreReadyWhenTheySayIt) {
  for (Backend& backend : Backends()) {
    if (!backend.device().is_host()) continue;  // the arena is looked at between sections
    Running running(Record(GetParam()), backend);
    const int64_t elements = running.parameters.arena_elements();
    running.executable.Run(Gradients::kReplace);
    const auto gradients = [&] {
      std::vector<double> all;
      for (const Parameter& p : running.parameters.all()) {
        const std::vector<double> values = running.memory.Gradient(p);
        all.resize(p.offset);  // padding
        all.insert(all.end(), values.begin(), values.end());
      }
      all.resize(elements);
      return all;
    };
    const std::vector<double> last = gradients();
    const auto buckets =
        GradientBuckets(running.executable.program(), running.parameters, ParameterStore::kBlock);
    std::vector<size_t> ends;
    int64_t covered = 0;
    for (const GradientBucket& bucket : buckets) {
      ends.push_back(bucket.ready);
      covered += bucket.end - bucket.begin;
    }
    EXPECT_EQ(covered, running.parameters.gradient_elements());
    EXPECT_TRUE(std::ranges::is_sorted(ends));
    ends.back() = running.executable.program().instructions.size();
    running.executable.SetSections(ends);
    running.memory.ClearGradients();
    running.executable.Run(Gradients::kReplace, [&](size_t section) {
      const std::vector<double> now = gradients();
      const GradientBucket& bucket = buckets.at(section);
      for (int64_t i = bucket.begin; i < std::min(bucket.end, elements); ++i) {
        EXPECT_EQ(now[i], last[i]) << "element " << i << " after section " << section;
      }
    });
  }
}

// A forward half that gets each bucket of the parameters only when it says that it needs it
// computes what one does that has all of them.
TEST_P(Compositions, BucketsAreThereWhenTheyAreNeeded) {
  for (Backend& backend : Backends()) {
    if (!backend.device().is_host()) continue;  // buckets come between sections
    Running running(Record(GetParam()), backend);
    const Program& program = running.executable.program();
    const auto gradients = [&] {
      running.executable.Run(Gradients::kReplace);
      std::vector<std::vector<double>> all;
      for (const Parameter& p : running.parameters.all()) all.push_back(running.memory.Gradient(p));
      return all;
    };
    const auto expected = gradients();

    std::vector<ElementRange> buckets = running.parameters.Buckets(ParameterStore::kBlock);
    // In this order each waits for some that are needed later, which must then come as early.
    EXPECT_TRUE(std::ranges::is_sorted(BucketsNeeded(program, buckets)));
    std::ranges::reverse(buckets);  // the forward half begins with the first one
    std::vector<size_t> ends = BucketsNeeded(program, buckets);
    EXPECT_TRUE(std::ranges::is_sorted(ends));
    EXPECT_LE(ends.back(), program.backward_begin);
    ends.push_back(program.instructions.size());
    running.executable.SetSections(ends);

    const size_t size = SizeOf(backend.Stored({DType::kF32, {1}}).dtype);
    auto* arena = static_cast<std::byte*>(running.memory.arenas().parameters);
    const std::vector<std::byte> whole(arena, arena + running.parameters.arena_elements() * size);
    std::ranges::fill_n(arena, std::ssize(whole), std::byte{0xFF});  // NaN
    running.executable.Run(Gradients::kReplace, [&](size_t section) {
      if (section == buckets.size()) return;
      const size_t begin = buckets[section].begin * size;
      std::copy_n(whole.begin() + static_cast<std::ptrdiff_t>(begin),
                  buckets[section].size() * size, arena + begin);
    });
    for (size_t i = 0; const Parameter& p : running.parameters.all()) {
      EXPECT_EQ(running.memory.Gradient(p), expected[i++]) << p.name;
    }
  }
}

}  // namespace
}  // namespace syntra
