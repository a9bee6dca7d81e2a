// Runs of an executable allocate no memory. This program counts every allocation of the process.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

#include "core/thread.h"
#include "model/model_trial.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SYNTRA_COUNTS_ALLOCATIONS 0
#else
#define SYNTRA_COUNTS_ALLOCATIONS 1
#endif

namespace {
std::atomic<int64_t> allocations = 0;
}

#if SYNTRA_COUNTS_ALLOCATIONS
// glibc's own, under the names by which it lets programs replace them.
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t size) {
  ++allocations;
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  ++allocations;
  return __libc_calloc(count, size);
}
void* realloc(void* old, size_t size) {
  ++allocations;
  return __libc_realloc(old, size);
}
void* memalign(size_t alignment, size_t size) {
  ++allocations;
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void** out, size_t alignment, size_t size) {
  *out = memalign(alignment, size);
  return *out ? 0 : ENOMEM;
}
}
#endif

namespace syntra {
namespace {

class Allocations : public testing::TestWithParam<std::pair<const std::string, std::string>> {};

TEST_P(Allocations, NoneInARun) {
  if (!SYNTRA_COUNTS_ALLOCATIONS) GTEST_SKIP() << "sanitizers bring their own allocator";
  // The pool's threads start once a process.
  ParallelFor(1 << 20, 1, [](int64_t, int64_t) {});
  for (const DType activations : {DType::kF32, DType::kBF16}) {
    ModelSetting setting{.config = TinyModel(GetParam().second, "dropout: 0.1")};
    setting.activations = activations;
    ModelTrial trial(setting, RandomBatch({2, 9, 6}, 32), Backend::kCpu);
    for (int run = 0; run < 3; ++run) {
      const int64_t before = allocations;
      trial.executable().Run();
      EXPECT_EQ(allocations - before, 0) << NameOf(activations) << ", run " << run;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Model, Allocations, testing::ValuesIn(TrialMixers()),
                         [](const auto& info) { return info.param.first; });

TEST(Counter, Counts) {
  if (!SYNTRA_COUNTS_ALLOCATIONS) GTEST_SKIP() << "sanitizers bring their own allocator";
  const int64_t before = allocations;
  auto number = std::make_unique<int>(3);
  EXPECT_EQ(*number, 3);
  EXPECT_GT(allocations, before);
}

}  // namespace
}  // namespace syntra
