// SPDX-License-Identifier: Apache-2.0
// The declarations in dist/nccl_library.h agree with nccl.h.
#include <gtest/gtest.h>
#include <nccl.h>

#include "dist/nccl_library.h"

namespace syntra::nccl {
namespace {

// Whether a value of type A is passed as one of type B is.
template <typename A, typename B>
constexpr bool PassedAlike =
    sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>&& std::is_class_v<A> ==
                                  std::is_class_v<B>;

template <typename A, typename... As, typename B, typename... Bs>
constexpr bool CalledAlike(A (*)(As...), B (*)(Bs...)) {
  if constexpr (sizeof...(As) == sizeof...(Bs)) {
    return PassedAlike<A, B> && (PassedAlike<As, Bs> && ...);
  }
  return false;
}

#define SYNTRA_FUNCTION(name) \
  static_assert(CalledAlike(decltype(&Interface::name){}, decltype(&::name){}));
SYNTRA_NCCL_FUNCTIONS(SYNTRA_FUNCTION)
#undef SYNTRA_FUNCTION

static_assert(int{kSuccess} == ncclSuccess && int{kInProgress} == ncclInProgress);
static_assert(int{kInt8} == ncclInt8 && int{kFloat32} == ncclFloat32 && int{kSum} == ncclSum);
static_assert(offsetof(Config, magic) == offsetof(ncclConfig_t, magic));
static_assert(offsetof(Config, version) == offsetof(ncclConfig_t, version));
static_assert(offsetof(Config, blocking) == offsetof(ncclConfig_t, blocking));

TEST(NcclHeader, KnowsTheConfiguration) {
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  const Config ours;
  EXPECT_EQ(ours.magic, theirs.magic);
  EXPECT_LE(ours.size, theirs.size);
  EXPECT_LE(ours.version, theirs.version);
}

}  // namespace
}  // namespace syntra::nccl
