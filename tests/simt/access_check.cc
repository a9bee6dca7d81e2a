// SPDX-License-Identifier: Apache-2.0
#include "tests/simt/access_check.h"

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace syntra::simt::access_check {
namespace {

// When a thread accessed a byte: the number of the interval between two barriers, counted through
// all blocks of all grids (0: never), the thread's step in that interval, whether the access is
// asynchronous, and the thread's index in the block. It is a single word, since every access
// compares some of them. It does not change until the thread's next step: a barrier, or whatever
// else orders its accesses before and after.
using Moment = uint64_t;
constexpr int kThreadBits = 10, kAsyncBits = 1, kStepBits = 21, kStretchBits = 32;
constexpr int kStepAt = kThreadBits + kAsyncBits, kStretchAt = kStepAt + kStepBits;
constexpr Moment kThreadMask = (Moment{1} << kThreadBits) - 1;
constexpr Moment kAsync = Moment{1} << kThreadBits;
static_assert(kMostThreads <= 1 << kThreadBits && kStretchAt + kStretchBits == 64);

Moment MomentOf(uint64_t stretch, uint64_t step, int thread) {
  return stretch << kStretchAt | step << kStepAt | static_cast<Moment>(thread);
}
int ThreadOf(Moment moment) { return static_cast<int>(moment & kThreadMask); }
int WarpOf(Moment moment) { return ThreadOf(moment) / kWarp; }
uint32_t StepOf(Moment moment) {
  return static_cast<uint32_t>(moment >> kStepAt) & ((1u << kStepBits) - 1);
}

// Instead of a write: no thread may access the bytes.
constexpr Moment kForbidden = ~Moment{0};

// The last write of two bytes (the smallest element of a kernel), and the last reads by two
// threads, of different warps if possible.
struct Cell {
  Moment write, reads[2];
  bool operator==(const Cell&) const = default;
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
  int threads = 0;             // of the block
  uint64_t stretch = 0;
  // Of each thread: its step, and the step after the last barrier of its warp.
  uint32_t steps[kMostThreads] = {}, warp_steps[kMostThreads] = {};
  Clock* known = nullptr;  // what each thread knows of others; null: nothing
  std::unordered_map<const Cell*, std::vector<Moment>> reads;  // of this block (KeepRead)
  Moment fenced[kMostThreads] = {};  // the moment after each thread's last FenceAsync
  Range shared, stacks;
  std::unordered_map<uintptr_t, std::unique_ptr<Page>> pages;
  // A cache of pages, indexed by page number.
  struct {
    uintptr_t number = 0;
    Page* page = nullptr;
  } near[kNearPages];
};
State the_state;

// Whether the access at `before`, in this stretch, is one that the clock knows.
bool Knows(const Clock& clock, Moment before) {
  return clock.stretch == the_state.stretch && StepOf(before) < clock.steps[ThreadOf(before)];
}

// Whether nothing orders the access at `before` and the current one. Grids are ordered. Each block
// has its own shared memory.
[[gnu::always_inline]] inline bool Concurrent(Moment before, Moment now, bool shared) {
  if (before < the_state.grid) return false;
  if (before < the_state.block) return !shared;
  const Moment other = before ^ now;
  if (other >> kStretchAt != 0 || (other & kThreadMask) == 0) return false;
  const int thread = ThreadOf(before);
  if (WarpOf(before) == WarpOf(now) && StepOf(before) < the_state.warp_steps[thread]) return false;
  return the_state.known == nullptr || !Knows(the_state.known[ThreadOf(now)], before);
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

[[gnu::cold]] void ReportUnfenced(const char* did, uintptr_t address, Moment before) {
  const Aside aside;
  Complain(fmt::format("{} starts an asynchronous access of what {} {} without a fence, {}",
                       NameOf(the_state.now), NameOf(before), did, PlaceOf(address)));
}

// Reports an access that starts asynchronously, if a thread of this block has accessed the same at
// the moment `before` and not fenced since.
void CheckFence(const char* did, uintptr_t address, Moment before, Moment now) {
  if ((now & kAsync) == 0 || (before & kAsync) != 0 || before < the_state.block) return;
  if (before >= the_state.fenced[ThreadOf(before)]) ReportUnfenced(did, address, before);
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

// Once threads know of others by clocks, two reads of a cell of shared memory do not stand for all:
// every read since the last write is kept.
[[gnu::noinline]] void KeepRead(const Cell& cell, Moment now) {
  const Aside aside;
  the_state.reads[&cell].push_back(now);
}
[[gnu::noinline]] void CheckKeptReads(const Cell& cell, uintptr_t address, Moment now) {
  const Aside aside;
  for (const Moment read : the_state.reads[&cell]) {
    CheckFence("read", address, read, now);
    if (Concurrent(read, now, true)) Report("a read and a write", address, read);
  }
  the_state.reads.erase(&cell);
}

void NoteRead(Cell& cell, Moment now, bool shared) {
  if (shared && the_state.known != nullptr) return KeepRead(cell, now);
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
  if (shared && the_state.known != nullptr) CheckKeptReads(cell, address, now);
  for (const Moment read : cell.reads) {
    CheckFence("read", address, read, now);
    if (Concurrent(read, now, shared)) Report("a read and a write", address, read);
  }
  cell.write = now;
}

// Compiled for each size and kind of access, since kernels spend most of their time here.
[[gnu::always_inline]] inline void NoteRange(uintptr_t address, size_t bytes, bool write,
                                             Moment now) {
  if (the_state.stacks.Holds(address)) return;
  const bool shared = the_state.shared.Holds(address);
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
    CheckFence("wrote", i * kCellBytes, cell.write, now);
    if (Concurrent(cell.write, now, shared)) {
      Report(write ? "writes" : "a write and a read", i * kCellBytes, cell.write);
    }
    const Cell before = cell;
    if (write) {
      NoteWrite(cell, i * kCellBytes, now, shared);
    } else {
      NoteRead(cell, now, shared);
    }
    // The cells of an element, most often all alike, are compared once.
    if (shared && the_state.known != nullptr) continue;
    for (Cell* next = &cell + 1; i + 1 < end && (i + 1) % kPageCells != 0 && *next == before; ++i) {
      *next++ = cell;
    }
  }
}

// An access by instrumented code.
[[gnu::always_inline]] inline void Access(const void* at, size_t bytes, bool write) {
  if (!the_state.running || the_state.aside) return;
  NoteRange(reinterpret_cast<uintptr_t>(at), bytes, write, the_state.now);
}

void NextStretch() {
  SYNTRA_CHECK(++the_state.stretch >> kStretchBits == 0, "too many barriers to tell apart");
  std::fill_n(the_state.steps, the_state.threads, 0);
  std::fill_n(the_state.warp_steps, the_state.threads, 0);
}

void Step(int thread) {
  SYNTRA_CHECK(++the_state.steps[thread] >> kStepBits == 0, "too many steps to tell apart");
}

// The running thread's next step.
void StepOn() {
  const int thread = ThreadOf(the_state.now);
  Step(thread);
  the_state.now = MomentOf(the_state.stretch, the_state.steps[thread], thread);
}

void Raise(uint32_t& step, uint32_t to) { step = std::max(step, to); }

// Adds what is known to a clock.
void Merge(const Clock& from, Clock& to) {
  if (from.stretch != the_state.stretch) return;
  if (to.stretch != from.stretch) {
    to = from;
    return;
  }
  for (int i = 0; i < kMostThreads; ++i) Raise(to.steps[i], from.steps[i]);
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
  NoteRange(reinterpret_cast<uintptr_t>(at), bytes, write, the_state.now);
}

void NoteAsync(const void* at, size_t bytes, bool write) {
  if (!the_state.running) return;
  NoteRange(reinterpret_cast<uintptr_t>(at), bytes, write, the_state.now | kAsync);
}

void FenceAsync() {
  if (!the_state.running) return;
  StepOn();
  the_state.fenced[ThreadOf(the_state.now)] = the_state.now;
}

void Release(Clock& clock) {
  if (!the_state.running) return;
  const int thread = ThreadOf(the_state.now), first = thread / kWarp * kWarp;
  if (clock.stretch != the_state.stretch) clock = {.stretch = the_state.stretch};
  if (the_state.known != nullptr) Merge(the_state.known[thread], clock);
  for (int i = first; i < first + kWarp; ++i) Raise(clock.steps[i], the_state.warp_steps[i]);
  StepOn();
  clock.steps[thread] = the_state.steps[thread];
}

void Acquire(const Clock& clock) {
  if (!the_state.running) return;
  static const auto clocks = std::make_unique<Clock[]>(kMostThreads);
  the_state.known = clocks.get();
  Merge(clock, clocks[ThreadOf(the_state.now)]);
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
  the_state.known = nullptr;
  the_state.grid = MomentOf(the_state.stretch + 1, 0, 0);
  the_state.blocks.clear();
}

void StartBlock(int threads, std::span<const std::byte> shared, std::span<const std::byte> stacks) {
  the_state.threads = threads;
  NextStretch();
  the_state.reads.clear();
  the_state.block = MomentOf(the_state.stretch, 0, 0);
  the_state.blocks.push_back(the_state.block);
  the_state.shared = RangeOf(shared);
  the_state.stacks = RangeOf(stacks);
}

void Enter(int thread) {
  the_state.now = MomentOf(the_state.stretch, the_state.steps[thread], thread);
  the_state.running = !the_state.unchecked;
}
void Leave() { the_state.running = false; }
void PassBarrier() { NextStretch(); }
void PassWarpBarrier(int warp) {
  const int first = warp * kWarp, end = first + kWarp;
  for (int i = first; i < end; ++i) {
    Step(i);
    the_state.warp_steps[i] = the_state.steps[i];
  }
  if (the_state.known == nullptr) return;
  Clock& all = the_state.known[first];
  for (int i = first + 1; i < end; ++i) Merge(the_state.known[i], all);
  for (int i = first + 1; i < end; ++i) Merge(all, the_state.known[i]);
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
