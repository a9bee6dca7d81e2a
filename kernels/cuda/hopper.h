// SPDX-License-Identifier: Apache-2.0
// Primitives of Hopper GPUs: barriers in shared memory, copies of tiles that arrive at them, and
// products of four warps whose operands are in shared memory. A kernel that uses them is declared
// with SYNTRA_HOPPER_BOUNDS, and does nothing unless kHopperCode.
//
// Copies and products access shared memory through another path than the threads do (PTX ISA,
// "async proxy"), and later than the instruction that starts them. They are ordered by:
//   a copy after products that read its target: a wait for the products, then a barrier at which
//     their threads arrive and for which the copying thread waits;
//   reads after a copy: a wait for the barrier at which it arrives;
//   writes after a product that reads the same memory or registers: a wait for the product;
//   a copy after accesses of its target by threads, even reads, and a product after writes by
//     threads: FenceAsync in each of these threads, then a barrier.
#pragma once

#include <cstdlib>
#include <string_view>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/mma.h"
#include "kernels/cuda/tensor_map.h"

#if !defined(__CUDACC__)
#include "simt/hopper.h"
#endif

namespace syntra::gpu {

// Whether this is code for sm_90a. In code for other GPUs the kernels are empty, and their blocks
// have at most a warp, by which HasHopperCode recognises them.
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
inline constexpr bool kHopperCode = true;
#define SYNTRA_HOPPER_BOUNDS(threads, blocks) __launch_bounds__(threads, blocks)
#else
inline constexpr bool kHopperCode = false;
#define SYNTRA_HOPPER_BOUNDS(threads, blocks) __launch_bounds__(::syntra::gpu::kWarp)
#endif

// Whether SYNTRA_HOPPER in the environment is `value`. With "off" Hopper GPUs run the kernels of
// other GPUs; with "two_passes" attention_grad never computes queries and keys in one pass.
inline bool HopperIs(std::string_view value) {
  const char* given = std::getenv("SYNTRA_HOPPER");
  return given && given == value;
}

// Whether a kernel may be launched that needs a Hopper: this thread's GPU is one (compute
// capability 9.0), the program has the kernel's code for it (sm_90a), and nobody turned it off.
template <typename... Parameters>
bool HasHopperCode(void (*kernel)(Parameters...)) {
  if (HopperIs("off")) return false;
#if defined(__CUDACC__)
  cudaFuncAttributes code;
  SYNTRA_CUDA(cudaFuncGetAttributes(&code, kernel));
  return code.binaryVersion == 90 && code.maxThreadsPerBlock > kWarp;
#else
  static_cast<void>(kernel);
  return simt::Capability() == 90;
#endif
}

// The shared memory that each block can have if so many of them run on a multiprocessor at once. It
// has 228 KiB, of which each block takes 1 KiB besides.
constexpr size_t HopperSharedBytes(int blocks = 1) { return (228 << 10) / blocks - 1024; }

// The warps of a warpgroup, which compute a product together. A warpgroup begins at a warp whose
// index is a multiple of this.
inline constexpr int kProductWarps = 4;

// WarpIndex in a form that tells the compiler that all lanes of a warp have the same. What depends
// on it alone, such as the descriptors of products, is then computed once for the warp, in uniform
// registers. All lanes must call it together. It takes a shuffle, so keep the result.
__device__ __forceinline__ int UniformWarpIndex() { return ShuffleFrom(WarpIndex(), 0); }

// A barrier in shared memory (PTX ISA, mbarrier). It goes through phases, one after another. A
// phase is complete when as many threads have arrived as the barrier was made for, and all bytes
// that they expect have arrived, too.
struct Barrier {
  uint64_t state;
};

// A turn in a ring of stages: the index of the stage, and the parity of its barriers' phases in
// this turn.
template <int kStages>
struct Turn {
  int stage = 0, parity = 0;

  __device__ Turn Next() const {
    return stage + 1 < kStages ? Turn{stage + 1, parity} : Turn{0, parity ^ 1};
  }
};

#if defined(__CUDACC__)

// Makes a barrier whose phases need `arrivals` arrivals each. Before it is used, the thread must
// call FenceAsync and the block must pass a barrier.
__device__ __forceinline__ void MakeBarrier(Barrier& barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(SharedAddress(&barrier)),
               "r"(arrivals)
               : "memory");
}
__device__ __forceinline__ void Arrive(Barrier& barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(SharedAddress(&barrier))
               : "memory");
}
// Arrives, and makes the phase also wait for `bytes` bytes of copies.
__device__ __forceinline__ void ArriveExpecting(Barrier& barrier, int bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(SharedAddress(&barrier)),
      "r"(bytes)
      : "memory");
}
// Waits until the phase with this parity is complete. That phase must be the barrier's current one
// or the one just before it. The first phase has parity 0.
__device__ __forceinline__ void WaitFor(Barrier& barrier, int parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "}" ::"r"(SharedAddress(&barrier)),
      "r"(parity)
      : "memory");
}

// Raises, or lowers, the number of registers of each thread of this warpgroup to kCount, a multiple
// of eight. The registers that some warpgroups get must have been given back by others.
template <int kCount>
__device__ __forceinline__ void GetRegisters() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
}
template <int kCount>
__device__ __forceinline__ void GiveRegisters() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
}

__device__ __forceinline__ void FenceAsync() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Starts to copy a tile of a mapped tensor to shared memory, to a multiple of 1024 bytes. `column`
// is a multiple of eight, since tiles begin at multiples of 16 bytes (PTX ISA, tiled mode, bounding
// box): on an H200 any other is an illegal instruction. Elements outside the tensor become zero.
// Row r of the tile is at byte 128 r, and its sixteen bytes p are in the place of its sixteen bytes
// p ^ r % 8. One thread calls it; the copy arrives at the barrier.
__device__ __forceinline__ void CopyTileAsync(BFloat16* to, const TensorMap& map, int column,
                                              int row, int64_t example, Barrier& barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(SharedAddress(to)),
      "l"(&map), "r"(column), "r"(row), "r"(static_cast<int>(example)), "r"(SharedAddress(&barrier))
      : "memory");
}

#define SYNTRA_FRAGMENT(f) "+f"(f.sum[0]), "+f"(f.sum[1]), "+f"(f.sum[2]), "+f"(f.sum[3])
#define SYNTRA_SUMS(s)                                                                        \
  SYNTRA_FRAGMENT(s[0]), SYNTRA_FRAGMENT(s[1]), SYNTRA_FRAGMENT(s[2]), SYNTRA_FRAGMENT(s[3]), \
      SYNTRA_FRAGMENT(s[4]), SYNTRA_FRAGMENT(s[5]), SYNTRA_FRAGMENT(s[6]), SYNTRA_FRAGMENT(s[7])
#define SYNTRA_SUM_OPERANDS                                       \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, " \
  "%14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "

// To be called between the threads' last access of a product's registers and the product.
__device__ __forceinline__ void FenceProducts(Fragment (&sums)[8]) {
  asm volatile("wgmma.fence.sync.aligned;" : SYNTRA_SUMS(sums)::"memory");
}
__device__ __forceinline__ void FenceProducts(Fragment (&sums)[8], FragmentA (&a)[4]) {
#pragma unroll
  for (FragmentA& each : a) {
#pragma unroll
    for (uint32_t& pair : each.pair) asm volatile("" : "+r"(pair)::"memory");
  }
  FenceProducts(sums);
}

__device__ __forceinline__ void FenceProducts(Fragment (&sums)[2][8]) {
  asm volatile("" : SYNTRA_SUMS(sums[1])::"memory");
  FenceProducts(sums[0]);
}
__device__ __forceinline__ void FenceProducts(Fragment (&sums)[4][8]) {
  asm volatile("" : SYNTRA_SUMS(sums[1]), SYNTRA_SUMS(sums[2]), SYNTRA_SUMS(sums[3])::"memory");
  FenceProducts(sums[0]);
}

// sums += A B for 64 rows of A, sixteen of each warp, and 64 columns of B, over 16 inner elements
// (PTX ISA, wgmma.m64n64k16). A warp's sums are those of eight mma.m16n8k16. With kAAcross A's tile
// has a row for each inner element, otherwise for each row of A; likewise B's: without kBAcross it
// has a row for each column of B.
template <bool kAAcross = false, bool kBAcross = false>
__device__ __forceinline__ void MultiplyAsync(Fragment (&sums)[8], uint64_t a, uint64_t b) {
  asm volatile(
      "{\n"
      ".reg .pred add;\n"
      "setp.eq.u32 add, 0, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " SYNTRA_SUM_OPERANDS
      "%32, %33, add, 1, 1, %34, %35;\n"
      "}"
      : SYNTRA_SUMS(sums)
      : "l"(a), "l"(b), "n"(kAAcross ? 1 : 0), "n"(kBAcross ? 1 : 0));
}
// sums += A B for 64 rows of A in registers, sixteen of each warp, and 16 rows of B with 64
// columns.
__device__ __forceinline__ void MultiplyAsync(Fragment (&sums)[8], const FragmentA& a, uint64_t b) {
  asm volatile(
      "{\n"
      ".reg .pred add;\n"
      "setp.eq.u32 add, 0, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " SYNTRA_SUM_OPERANDS
      "{%32, %33, %34, %35}, %36, add, 1, 1, 1;\n"
      "}"
      : SYNTRA_SUMS(sums)
      : "r"(a.pair[0]), "r"(a.pair[1]), "r"(a.pair[2]), "r"(a.pair[3]), "l"(b));
}
// sums += A B for 128 columns of B, in two tiles side by side; without kBAcross one tile follows
// the other.
template <bool kAAcross, bool kBAcross>
__device__ __forceinline__ void MultiplyAsync(Fragment (&sums)[2][8], uint64_t a, uint64_t b) {
  asm volatile(
      "{\n"
      ".reg .pred add;\n"
      "setp.eq.u32 add, 0, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "
      "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, "
      "%38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, "
      "%56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, add, 1, 1, %66, %67;\n"
      "}"
      : SYNTRA_SUMS(sums[0]), SYNTRA_SUMS(sums[1])
      : "l"(a), "l"(b), "n"(kAAcross ? 1 : 0), "n"(kBAcross ? 1 : 0));
}
// The same for 256 columns in four tiles.
template <bool kAAcross, bool kBAcross>
__device__ __forceinline__ void MultiplyAsync(Fragment (&sums)[4][8], uint64_t a, uint64_t b) {
  asm volatile(
      "{\n"
      ".reg .pred add;\n"
      "setp.eq.u32 add, 0, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, "
      "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, "
      "%34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, "
      "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, "
      "%66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, "
      "%82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, "
      "%98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, "
      "%126, %127}, "
      "%128, %129, add, 1, 1, %130, %131;\n"
      "}"
      : SYNTRA_SUMS(sums[0]), SYNTRA_SUMS(sums[1]), SYNTRA_SUMS(sums[2]), SYNTRA_SUMS(sums[3])
      : "l"(a), "l"(b), "n"(kAAcross ? 1 : 0), "n"(kBAcross ? 1 : 0));
}
__device__ __forceinline__ void CommitProducts() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Waits for all products that this warp has committed, except the last kLeft groups. `sums` are
// theirs: before, nothing may access them. The operands keep accesses after the wait in PTX, which
// knows no such operands; what ptxas makes of it is tested (tests/cuda/products_in_flight.py).
template <int kLeft = 0>
__device__ __forceinline__ void WaitForProducts(Fragment (&sums)[8]) {
  asm volatile("wgmma.wait_group.sync.aligned %32;" : SYNTRA_SUMS(sums) : "n"(kLeft) : "memory");
}
template <int kLeft = 0>
__device__ __forceinline__ void WaitForProducts(Fragment (&sums)[2][8]) {
  asm volatile("wgmma.wait_group.sync.aligned %32;" : SYNTRA_SUMS(sums[0]) : "n"(kLeft) : "memory");
  asm volatile("" : SYNTRA_SUMS(sums[1])::"memory");
}
template <int kLeft = 0>
__device__ __forceinline__ void WaitForProducts(Fragment (&sums)[4][8]) {
  asm volatile("wgmma.wait_group.sync.aligned %32;" : SYNTRA_SUMS(sums[0]) : "n"(kLeft) : "memory");
  asm volatile("" : SYNTRA_SUMS(sums[1]), SYNTRA_SUMS(sums[2]), SYNTRA_SUMS(sums[3])::"memory");
}

#undef SYNTRA_FRAGMENT
#undef SYNTRA_SUMS
#undef SYNTRA_SUM_OPERANDS

#else

inline void MakeBarrier(Barrier& barrier, int arrivals) { simt::MakeBarrier(&barrier, arrivals); }
inline void Arrive(Barrier& barrier) { simt::Arrive(&barrier, 0); }
inline void ArriveExpecting(Barrier& barrier, int bytes) { simt::Arrive(&barrier, bytes); }
inline void WaitFor(Barrier& barrier, int parity) { simt::WaitFor(&barrier, parity); }
template <int kCount>
void GetRegisters() {
  simt::SetRegisters(kCount, true);
}
template <int kCount>
void GiveRegisters() {
  simt::SetRegisters(kCount, false);
}
inline void FenceAsync() { simt::FenceAsync(); }
inline void CopyTileAsync(BFloat16* to, const TensorMap& map, int column, int row, int64_t example,
                          Barrier& barrier) {
  simt::CopyTile(to, map.opaque, {column, row, example}, &barrier);
}
inline void FenceProducts(Fragment (&)[8]) { simt::FenceProducts(); }
inline void FenceProducts(Fragment (&)[8], FragmentA (&)[4]) { simt::FenceProducts(); }
inline void FenceProducts(Fragment (&)[2][8]) { simt::FenceProducts(); }
inline void FenceProducts(Fragment (&)[4][8]) { simt::FenceProducts(); }
template <bool kAAcross = false, bool kBAcross = false>
void MultiplyAsync(Fragment (&sums)[8], uint64_t a, uint64_t b) {
  simt::Multiply(sums[0].sum, nullptr, a, b, {64, kAAcross, kBAcross});
}
inline void MultiplyAsync(Fragment (&sums)[8], const FragmentA& a, uint64_t b) {
  simt::Multiply(sums[0].sum, a.pair, 0, b, {.b_across = true});
}
template <bool kAAcross, bool kBAcross>
void MultiplyAsync(Fragment (&sums)[2][8], uint64_t a, uint64_t b) {
  simt::Multiply(sums[0][0].sum, nullptr, a, b, {128, kAAcross, kBAcross});
}
template <bool kAAcross, bool kBAcross>
void MultiplyAsync(Fragment (&sums)[4][8], uint64_t a, uint64_t b) {
  simt::Multiply(sums[0][0].sum, nullptr, a, b, {256, kAAcross, kBAcross});
}
inline void CommitProducts() { simt::CommitProducts(); }
template <int kLeft = 0>
void WaitForProducts(Fragment (&)[8]) {
  simt::WaitForProducts(kLeft);
}
template <int kLeft = 0>
void WaitForProducts(Fragment (&)[2][8]) {
  simt::WaitForProducts(kLeft);
}
template <int kLeft = 0>
void WaitForProducts(Fragment (&)[4][8]) {
  simt::WaitForProducts(kLeft);
}

#endif

// A tile of 64 rows in the layout of CopyTileAsync.
using RowTile = BFloat16[64 * kMappedColumns];

// The descriptor of rows or columns of a tile in the layout of CopyTileAsync (PTX ISA, wgmma,
// matrix descriptor): its swizzling, and groups of eight rows 1024 bytes apart. `from` is the first
// element, in a row that is a multiple of eight and in a column that is a multiple of 16. `apart`:
// the bytes from a tile to the one at its side, if the product has two.
__device__ __forceinline__ uint64_t TileDescriptor(const BFloat16* from, int apart = 0) {
  constexpr uint64_t kSwizzled128 = uint64_t{1} << 62, kGroups = uint64_t{1024 >> 4} << 32;
  return kSwizzled128 | kGroups | uint64_t(apart >> 4) << 16 | (SharedAddress(from) & 0x3FFFF) >> 4;
}

// The descriptor of a matrix that begins `elements` elements after another's. The sum is cheaper
// than a new descriptor, and it cannot overflow: shared memory is smaller than a descriptor's range
// of addresses.
__device__ __forceinline__ uint64_t Further(uint64_t descriptor, int elements) {
  return descriptor + elements * static_cast<int>(sizeof(BFloat16)) / 16;
}

// sums += A B^T, where A and B are tiles of 64 rows.
__device__ __forceinline__ void MultiplyTiles(Fragment (&sums)[8], const BFloat16* a,
                                              const BFloat16* b) {
  const uint64_t first_a = TileDescriptor(a), first_b = TileDescriptor(b);
#pragma unroll
  for (int k = 0; k < kMappedColumns; k += 16) {
    MultiplyAsync(sums, Further(first_a, k), Further(first_b, k));
  }
}
// sums += A B, where A is in registers and B is a tile that has a row for each column of A.
__device__ __forceinline__ void MultiplyTiles(Fragment (&sums)[8], const FragmentA (&a)[4],
                                              const BFloat16* b) {
  const uint64_t first = TileDescriptor(b);
#pragma unroll
  for (int k = 0; k < 4; ++k) MultiplyAsync(sums, a[k], Further(first, 16 * k * kMappedColumns));
}
// Rounds a warp's sums of 64 columns to such an operand A.
__device__ __forceinline__ void RoundTile(const Fragment (&sums)[8], FragmentA (&a)[4]) {
#pragma unroll
  for (int k = 0; k < 4; ++k) a[k] = RowsOf(sums[2 * k], sums[2 * k + 1]);
}

// The place of an element of a row of a tile in the layout of CopyTileAsync.
template <typename Element>
__device__ __forceinline__ Element* SwizzledAt(Element* tile, int row, int column) {
  return tile + row * kMappedColumns + (column / kEight ^ row % 8) * kEight + column % kEight;
}

// Puts a warp's 16 rows of 64 columns where products read them: to rows of a tile in that layout,
// of which the first is a multiple of eight.
__device__ __forceinline__ void PutRows(const FragmentA (&rows)[kMappedColumns / 16],
                                        BFloat16* tile) {
#pragma unroll
  for (int k = 0; k < kMappedColumns / 16; ++k) {
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      BFloat16* to = SwizzledAt(tile, FragmentRow(r % 2 * 2), (2 * k + r / 2) * kEight);
      *reinterpret_cast<uint32_t*>(to + FragmentColumn(0)) = rows[k].pair[r];
    }
  }
}

// All lanes of a warp call it; one arrives.
__device__ __forceinline__ void ArriveOnce(Barrier& barrier) {
  SyncWarp();
  if (LaneIndex() == 0) Arrive(barrier);
}

// A ring of stages in shared memory, which some threads fill and others empty.
template <int kStages>
struct Ring {
  Barrier full[kStages], empty[kStages];

  // Makes the barriers: `filling` arrivals complete a phase of a full barrier, `emptying` arrivals
  // one of an empty barrier. The same must follow as after MakeBarrier.
  __device__ void Make(int filling, int emptying) {
    for (int stage = 0; stage < kStages; ++stage) {
      MakeBarrier(full[stage], filling);
      MakeBarrier(empty[stage], emptying);
    }
  }
};

// Reads the stages of a ring, one after the other, by asynchronous products of a warp.
template <int kStages>
class RingReader {
 public:
  __device__ explicit RingReader(Ring<kStages>& ring) : ring_(ring) {}

  // Waits until the next stage is full.
  __device__ __forceinline__ int Next() {
    WaitFor(ring_.full[turn_.stage], turn_.parity);
    return turn_.stage;
  }
  // The products of the next stage are committed, and those of the one before are complete.
  __device__ __forceinline__ void Committed() {
    Complete();
    used_ = turn_.stage;
    turn_ = turn_.Next();
  }
  // All products are complete, so that the stage of the last ones is empty.
  __device__ __forceinline__ void Complete() {
    if (used_ >= 0 && LaneIndex() == 0) Arrive(ring_.empty[used_]);
    used_ = -1;
  }

 private:
  Ring<kStages>& ring_;
  Turn<kStages> turn_;
  int used_ = -1;  // the stage of products that may not be complete; -1: there are none
};

// Starts to copy kRows rows of 64 columns to a tile, with copies by the threads themselves.
// kThreads threads call it, a multiple of eight; the index of the first is a multiple of kThreads.
// Rows from `there` on become zero.
template <int kThreads, int kRows>
__device__ __forceinline__ void CopyTileRows(const BFloat16* from, int64_t stride, int there,
                                             BFloat16* to) {
  constexpr int kElements = Line<BFloat16>::kElements, kPieces = kMappedColumns / kElements;
  constexpr int kRowsAtOnce = kThreads / kPieces;
  const int first = ThreadIndex() % kThreads / kPieces, piece = ThreadIndex() % kPieces;
  from += first * stride + piece * kElements;
#pragma unroll
  for (int row = first; row < first + kRows; row += kRowsAtOnce) {
    CopyAsync(to + row * kMappedColumns + (piece ^ row % 8) * kElements, from, row < there);
    from += kRowsAtOnce * stride;
  }
}

// Fills the stages of a ring, one after the other, with copies by threads. Up to kAhead groups of
// copies are in flight; when one is complete, the thread arrives at its barrier.
template <int kStages, int kAhead>
class RingWriter {
 public:
  // A reader waits for a stage before it says that the one before is empty.
  static_assert(kStages >= kAhead + 2);

  __device__ explicit RingWriter(Ring<kStages>& ring) : ring_(ring) {}

  // Waits until the next stage is empty.
  __device__ __forceinline__ int Next() {
    WaitFor(ring_.empty[turn_.stage], turn_.parity ^ 1);
    return turn_.stage;
  }
  // Ends the group of the next stage.
  __device__ __forceinline__ void Commit() {
    Commit(&ring_.full[turn_.stage]);
    turn_ = turn_.Next();
  }
  // Ends a group with a barrier of its own or, null, without one. Waits for the group kAhead
  // before.
  __device__ __forceinline__ void Commit(Barrier* barrier) {
    CommitCopies();
    WaitForCopies<kAhead>();
    if (barriers_[0] != nullptr) {
      FenceAsync();
      Arrive(*barriers_[0]);
    }
#pragma unroll
    for (int i = 0; i < kAhead - 1; ++i) barriers_[i] = barriers_[i + 1];
    barriers_[kAhead - 1] = barrier;
  }
  // Waits for all groups.
  __device__ void Finish() {
    for (int i = 0; i < kAhead; ++i) Commit(nullptr);
  }

 private:
  Ring<kStages>& ring_;
  Turn<kStages> turn_;
  Barrier* barriers_[kAhead] = {};
};

}  // namespace syntra::gpu
