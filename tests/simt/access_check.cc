// SPDX-License-Identifier: Apache-2.0
#include "tests/simt/access_check.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "tests/simt/simt.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace syntra::simt::access_check {
namespace {

// When a thread accessed a byte: the number of the interval between two barriers, counted through
// all blocks of all grids (0: never), the number of barriers of its warp in that interval, and the
// thread's index in the block. It is a single word, since every access compares some of them. It
// does not change until the thread passes a barrier.
using Moment = uint64_t;
constexpr int kThreadBits = 10, kWarpBarrierBits = 22, kStretchBits = 32;
constexpr Moment kThreadMask = (Moment{1} << kThreadBits) - 1;
constexpr Moment kWarpBarrierMask = ((Moment{1} << kWarpBarrierBits) - 1) << kThreadBits;
static_assert(kMostThreads <= 1 << kThreadBits);

Moment MomentOf(uint64_t stretch, uint64_t warp_barriers, int thread) {
  return stretch << (kThreadBits + kWarpBarrierBits) | warp_barriers << kThreadBits |
         static_cast<Moment>(thread);
}
int ThreadOf(Moment moment) { return static_cast<int>(moment & kThreadMask); }
int WarpOf(Moment moment) { return ThreadOf(moment) / kWarp; }

// Instead of a write: no thread may access the bytes.
constexpr Moment kForbidden = ~Moment{0};

// The last write of two bytes (the smallest element of a kernel), and the last reads by two
// threads, of different warps if possible.
struct Cell {
  Moment write, reads[2];
};

constexpr uintptr_t kCellBytes = 2, kPageCells = 2048, kNearPages = 256;
struct Page {
  Cell cells[kPageCells] = {};
};

struct Range {
  uintptr_t begin = 0;
  size_t size = 0;
  bool Holds(uintptr_t address) const { return address - begin < size; }
};

// The functions that check an access use no templates of the standard library. The linker might
// take such a template from an instrumented file, and it would call these functions recursively.
struct State {
  bool unchecked = false;  // whether an Unchecked exists
  bool running = false;    // whether a thread is running that is checked
  bool aside = false;      // whether an Aside exists
  Moment now = 0;
  Moment grid = 0, block = 0;  // the first moment of this grid and of this block
  std::vector<Moment> blocks;  // the first moment of each block of this grid so far
  uint64_t stretch = 0;
  uint64_t warp_barriers[kMostThreads / kWarp] = {};
  Range shared, stacks;
  std::unordered_map<uintptr_t, std::unique_ptr<Page>> pages;
  // A cache of pages, indexed by page number.
  struct {
    uintptr_t number = 0;
    Page* page = nullptr;
  } near[kNearPages];
};
State the_state;

// Whether nothing orders the access at `before` and the current one. Grids are ordered. Each block
// has its own shared memory.
[[gnu::always_inline]] inline bool Concurrent(Moment before, Moment now, bool shared) {
  if (before < the_state.grid) return false;
  if (before < the_state.block) return !shared;
  const Moment other = before ^ now;
  if (other >> (kThreadBits + kWarpBarrierBits) != 0 || (other & kThreadMask) == 0) return false;
  return WarpOf(before) != WarpOf(now) || (other & kWarpBarrierMask) == 0;
}

std::string NameOf(Moment moment) {
  const auto& blocks = the_state.blocks;
  const auto block = std::upper_bound(blocks.begin(), blocks.end(), moment) - blocks.begin() - 1;
  return fmt::format("block {} thread {}", block, ThreadOf(moment));
}

std::string PlaceOf(uintptr_t address) {
  const auto [begin, size] = the_state.shared;
  return Range{begin, size + kGuardBytes}.Holds(address)
             ? fmt::format("shared byte {}", address - begin)
             : fmt::format("memory at {:#x}", address);
}

[[gnu::cold]] void Report(const char* what, uintptr_t address, Moment before) {
  const Aside aside;
  Complain(fmt::format("race: {} by {} and {}, {}", what, NameOf(before), NameOf(the_state.now),
                       PlaceOf(address)));
}

[[gnu::cold]] void ReportForbidden(uintptr_t address, bool write) {
  const Aside aside;
  Complain(fmt::format("{} {} {}, which is none of the kernel's", NameOf(the_state.now),
                       write ? "writes" : "reads", PlaceOf(address)));
}

[[gnu::noinline]] Page* FindPage(uintptr_t number) {
  const Aside aside;
  std::unique_ptr<Page>& page = the_state.pages[number];
  if (!page) page = std::make_unique<Page>();
  the_state.near[number % kNearPages] = {number, page.get()};
  return page.get();
}

Page* PageOf(uintptr_t number) {
  const auto& near = the_state.near[number % kNearPages];
  return near.number == number && near.page != nullptr ? near.page : FindPage(number);
}

void NoteRead(Cell& cell, Moment now, bool shared) {
  // Keeps one read of this thread's warp and one of another warp, if possible. If a later write
  // conflicts with any read, it conflicts with one of these.
  for (Moment& read : cell.reads) {
    if (!Concurrent(read, now, shared)) {
      read = now;
      return;
    }
  }
  if (WarpOf(cell.reads[0]) == WarpOf(cell.reads[1])) cell.reads[1] = now;
}

void NoteWrite(Cell& cell, uintptr_t address, Moment now, bool shared) {
  for (const Moment read : cell.reads) {
    if (Concurrent(read, now, shared)) Report("a read and a write", address, read);
  }
  cell.write = now;
}

// Compiled for each size and kind of access, since kernels spend most of their time here.
[[gnu::always_inline]] inline void NoteRange(uintptr_t address, size_t bytes, bool write) {
  if (the_state.stacks.Holds(address)) return;
  const bool shared = the_state.shared.Holds(address);
  const Moment now = the_state.now;
  const uintptr_t end = (address + bytes - 1) / kCellBytes + 1;
  Page* page = nullptr;
  for (uintptr_t i = address / kCellBytes; i < end; ++i) {
    if (page == nullptr || i % kPageCells == 0) page = PageOf(i / kPageCells);
    Cell& cell = page->cells[i % kPageCells];
    // The thread has done so before, with no barrier since: what others did meanwhile was compared
    // with that access.
    if ((write ? cell.write : cell.reads[0]) == now) continue;
    if (cell.write == kForbidden) {
      ReportForbidden(i * kCellBytes, write);
      continue;
    }
    if (Concurrent(cell.write, now, shared)) {
      Report(write ? "writes" : "a write and a read", i * kCellBytes, cell.write);
    }
    if (write) {
      NoteWrite(cell, i * kCellBytes, now, shared);
    } else {
      NoteRead(cell, now, shared);
    }
  }
}

// An access by instrumented code.
[[gnu::always_inline]] inline void Access(const void* at, size_t bytes, bool write) {
  if (!the_state.running || the_state.aside) return;
  NoteRange(reinterpret_cast<uintptr_t>(at), bytes, write);
}

void NextStretch() {
  SYNTRA_CHECK(++the_state.stretch >> kStretchBits == 0, "too many barriers to tell apart");
  std::memset(the_state.warp_barriers, 0, sizeof(the_state.warp_barriers));
}

Range RangeOf(std::span<const std::byte> memory) {
  return {reinterpret_cast<uintptr_t>(memory.data()), memory.size()};
}

void Fill(std::span<const std::byte> memory, Moment write) {
  const Range range = RangeOf(memory);
  const uintptr_t end = (range.begin + range.size) / kCellBytes;
  for (uintptr_t i = (range.begin + kCellBytes - 1) / kCellBytes; i < end; ++i) {
    PageOf(i / kPageCells)->cells[i % kPageCells] = {write, {}};
  }
}

}  // namespace

void Note(const void* at, size_t bytes, bool write) {
  if (!the_state.running) return;
  NoteRange(reinterpret_cast<uintptr_t>(at), bytes, write);
}

Aside::Aside() : before_(the_state.aside) { the_state.aside = true; }
Aside::~Aside() { the_state.aside = before_; }

Forbidden::Forbidden(std::span<const std::byte> memory) : memory_(memory) {
  Fill(memory_, kForbidden);
#if defined(__SANITIZE_ADDRESS__)
  __asan_poison_memory_region(memory_.data(), memory_.size());
#endif
}
Forbidden::~Forbidden() {
  Fill(memory_, 0);
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(memory_.data(), memory_.size());
#endif
}

Unchecked::Unchecked() : before_(the_state.unchecked) { the_state.unchecked = true; }
Unchecked::~Unchecked() { the_state.unchecked = before_; }

void StartGrid() {
  the_state.grid = MomentOf(the_state.stretch + 1, 0, 0);
  the_state.blocks.clear();
}

void StartBlock(std::span<const std::byte> shared, std::span<const std::byte> stacks) {
  NextStretch();
  the_state.block = MomentOf(the_state.stretch, 0, 0);
  the_state.blocks.push_back(the_state.block);
  the_state.shared = RangeOf(shared);
  the_state.stacks = RangeOf(stacks);
}

void Enter(int thread) {
  the_state.now = MomentOf(the_state.stretch, the_state.warp_barriers[thread / kWarp], thread);
  the_state.running = !the_state.unchecked;
}
void Leave() { the_state.running = false; }
void PassBarrier() { NextStretch(); }
void PassWarpBarrier(int warp) {
  SYNTRA_CHECK(++the_state.warp_barriers[warp] >> kWarpBarrierBits == 0,
               "too many barriers of a warp to tell apart");
}

}  // namespace syntra::simt::access_check

// The functions that instrumented code calls.
#define SYNTRA_ACCESS(bytes)                                                                  \
  void __tsan_read##bytes(void* at) { syntra::simt::access_check::Access(at, bytes, false); } \
  void __tsan_write##bytes(void* at) { syntra::simt::access_check::Access(at, bytes, true); } \
  void __tsan_unaligned_read##bytes(void* at) {                                               \
    syntra::simt::access_check::Access(at, bytes, false);                                     \
  }                                                                                           \
  void __tsan_unaligned_write##bytes(void* at) {                                              \
    syntra::simt::access_check::Access(at, bytes, true);                                      \
  }
extern "C" {
SYNTRA_ACCESS(1)
SYNTRA_ACCESS(2)
SYNTRA_ACCESS(4)
SYNTRA_ACCESS(8)
SYNTRA_ACCESS(16)
void __tsan_read_range(void* at, unsigned long bytes) {
  syntra::simt::access_check::Access(at, bytes, false);
}
void __tsan_write_range(void* at, unsigned long bytes) {
  syntra::simt::access_check::Access(at, bytes, true);
}
// Reference counts of shared pointers, in host code of the same files.
int __tsan_atomic32_fetch_add(volatile int* at, int value, int) {
  return __atomic_fetch_add(at, value, __ATOMIC_ACQ_REL);
}
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
}
#undef SYNTRA_ACCESS
