#include "tests/simt/race_check.h"

#include <algorithm>
#include <array>
#include <memory>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "tests/simt/simt.h"

namespace syntra::simt::race_check {
namespace {

// When a thread touched a byte: its block, numbered through all grids, and how many barriers and
// exchanges it had passed.
struct Moment {
  int64_t block = -1;
  int16_t thread = 0;
  uint32_t barriers = 0, exchanges = 0;
};

// The last write of two bytes, the least that kernels' elements have, and the last reads by two
// threads of different warps, or of one.
struct Cell {
  Moment write;
  std::array<Moment, 2> reads;
};

constexpr uintptr_t kCellBytes = 2, kPageCells = 2048;
using Page = std::array<Cell, kPageCells>;

struct State {
  bool enabled = true;
  bool running = false;  // a thread has its turn
  bool aside = false;    // an Aside lives
  Moment now;
  int64_t first_block = 0, next_block = 0;  // of this grid, and behind its last
  std::array<uint32_t, kMostThreads / kWarp> exchanges{};
  std::span<const std::byte> shared, stacks;
  std::unordered_map<uintptr_t, std::unique_ptr<Page>> pages;
  uintptr_t last_number = 0;
  Page* last_page = nullptr;
};
State the_state;

// Whether nothing orders what happened at `before` and now. Grids are ordered; shared memory is
// another one in each block.
bool Concurrent(const Moment& before, const Moment& now, bool shared) {
  if (before.block != now.block) return !shared && before.block >= the_state.first_block;
  if (before.thread == now.thread || before.barriers != now.barriers) return false;
  return before.thread / kWarp != now.thread / kWarp || before.exchanges == now.exchanges;
}

bool IsWithin(uintptr_t address, std::span<const std::byte> memory) {
  const auto begin = reinterpret_cast<uintptr_t>(memory.data());
  return address >= begin && address < begin + memory.size();
}

void Report(const char* what, uintptr_t address, const Moment& before, const Moment& now) {
  const auto shared = reinterpret_cast<uintptr_t>(the_state.shared.data());
  Complain(fmt::format("race: {} by block {} thread {} and block {} thread {}, {}", what,
                       before.block - the_state.first_block, before.thread,
                       now.block - the_state.first_block, now.thread,
                       IsWithin(address, the_state.shared)
                           ? fmt::format("shared byte {}", address - shared)
                           : fmt::format("memory at {:#x}", address)));
}

Cell& CellAt(uintptr_t cell) {
  const uintptr_t number = cell / kPageCells;
  if (the_state.last_page == nullptr || number != the_state.last_number) {
    std::unique_ptr<Page>& page = the_state.pages[number];
    if (!page) page = std::make_unique<Page>();
    the_state.last_number = number;
    the_state.last_page = page.get();
  }
  return (*the_state.last_page)[cell % kPageCells];
}

void NoteRead(Cell& cell, const Moment& now, bool shared) {
  // Keeps one read of this thread's warp and one of another, if it can: a later write conflicts
  // with at least one of them if it conflicts with any.
  for (Moment& read : cell.reads) {
    if (!Concurrent(read, now, shared)) {
      read = now;
      return;
    }
  }
  if (cell.reads[0].thread / kWarp == cell.reads[1].thread / kWarp) cell.reads[1] = now;
}

// From instrumented code.
void Access(const void* at, size_t bytes, bool write) {
  if (the_state.running && !the_state.aside) Note(at, bytes, write);
}

}  // namespace

void Note(const void* at, size_t bytes, bool write) {
  const Aside aside;
  const auto address = reinterpret_cast<uintptr_t>(at);
  if (IsWithin(address, the_state.stacks)) return;
  const bool shared = IsWithin(address, the_state.shared);
  Moment now = the_state.now;
  now.exchanges = the_state.exchanges[now.thread / kWarp];
  for (uintptr_t i = address / kCellBytes; i * kCellBytes < address + bytes; ++i) {
    Cell& cell = CellAt(i);
    if (Concurrent(cell.write, now, shared)) {
      Report(write ? "writes" : "a write and a read", i * kCellBytes, cell.write, now);
    }
    if (write) {
      for (const Moment& read : cell.reads) {
        if (Concurrent(read, now, shared)) {
          Report("a read and a write", i * kCellBytes, read, now);
        }
      }
      cell.write = now;
    } else {
      NoteRead(cell, now, shared);
    }
  }
}

Aside::Aside() : before_(std::exchange(the_state.aside, true)) {}
Aside::~Aside() { the_state.aside = before_; }

void SetEnabled(bool enabled) { the_state.enabled = enabled; }

void StartGrid(int64_t blocks) {
  the_state.first_block = the_state.next_block;
  the_state.next_block += blocks;
}

void StartBlock(int64_t block, std::span<const std::byte> shared,
                std::span<const std::byte> stacks) {
  the_state.now = {.block = the_state.first_block + block};
  the_state.exchanges.fill(0);
  the_state.shared = shared;
  the_state.stacks = stacks;
}

void Enter(int thread) {
  the_state.now.thread = static_cast<int16_t>(thread);
  the_state.running = the_state.enabled;
}
void Leave() { the_state.running = false; }
void PassBarrier() { ++the_state.now.barriers; }
void PassWarp(int warp) { ++the_state.exchanges[warp]; }

}  // namespace syntra::simt::race_check

// What instrumented code calls.
#define SYNTRA_ACCESS(bytes)                                                                \
  void __tsan_read##bytes(void* at) { syntra::simt::race_check::Access(at, bytes, false); } \
  void __tsan_write##bytes(void* at) { syntra::simt::race_check::Access(at, bytes, true); } \
  void __tsan_unaligned_read##bytes(void* at) {                                             \
    syntra::simt::race_check::Access(at, bytes, false);                                     \
  }                                                                                         \
  void __tsan_unaligned_write##bytes(void* at) {                                            \
    syntra::simt::race_check::Access(at, bytes, true);                                      \
  }
extern "C" {
SYNTRA_ACCESS(1)
SYNTRA_ACCESS(2)
SYNTRA_ACCESS(4)
SYNTRA_ACCESS(8)
SYNTRA_ACCESS(16)
void __tsan_read_range(void* at, unsigned long bytes) {
  syntra::simt::race_check::Access(at, bytes, false);
}
void __tsan_write_range(void* at, unsigned long bytes) {
  syntra::simt::race_check::Access(at, bytes, true);
}
// Counts of shared pointers in host code of the same files.
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
