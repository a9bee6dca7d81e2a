#include "tests/simt/race_check.h"

#include <algorithm>
#include <array>
#include <memory>
#include <unordered_map>

#include "base/error.h"
#include "tests/simt/simt.h"

namespace syntra::simt::race_check {
namespace {

// When a thread touched a byte: its block, and how many barriers and exchanges it had passed.
struct Moment {
  int32_t block = -1;
  int16_t thread = 0;
  uint32_t barriers = 0, exchanges = 0;
};

// The last write of a byte, and the last reads by two threads of different warps, or of one.
struct Byte {
  Moment write;
  std::array<Moment, 2> reads;
};

constexpr uintptr_t kPageBytes = 4096;
using Page = std::array<Byte, kPageBytes>;

struct State {
  bool running = false;  // a thread has its turn
  bool inside = false;   // this code itself is at work
  Moment now;
  std::array<uint32_t, kMostThreads / kWarp> exchanges{};
  std::span<const std::byte> shared, stacks;
  std::unordered_map<uintptr_t, std::unique_ptr<Page>> pages;
  uintptr_t last_number = 0;
  Page* last_page = nullptr;
};
State& TheState() {
  static State state;
  return state;
}

// Whether nothing orders what happened at `before` and now.
bool Concurrent(const Moment& before, const Moment& now) {
  if (before.block < 0) return false;
  if (before.block != now.block) return true;
  if (before.thread == now.thread || before.barriers != now.barriers) return false;
  return before.thread / kWarp != now.thread / kWarp || before.exchanges == now.exchanges;
}

void Report(const char* what, uintptr_t address, const Moment& before, const Moment& now) {
  const State& state = TheState();
  const auto shared = reinterpret_cast<uintptr_t>(state.shared.data());
  const bool in_shared = address >= shared && address < shared + state.shared.size();
  Complain(fmt::format("race: {} by block {} thread {} and block {} thread {}, {}", what,
                       before.block, before.thread, now.block, now.thread,
                       in_shared ? fmt::format("shared byte {}", address - shared)
                                 : fmt::format("memory at {:#x}", address)));
}

Byte& ByteAt(State& state, uintptr_t address) {
  const uintptr_t number = address / kPageBytes;
  if (state.last_page == nullptr || number != state.last_number) {
    std::unique_ptr<Page>& page = state.pages[number];
    if (!page) page = std::make_unique<Page>();
    state.last_number = number;
    state.last_page = page.get();
  }
  return (*state.last_page)[address % kPageBytes];
}

void NoteRead(Byte& byte, const Moment& now) {
  // Keeps one read of this thread's warp and one of another, if it can: a later write conflicts
  // with at least one of them if it conflicts with any.
  for (Moment& read : byte.reads) {
    if (!Concurrent(read, now)) {
      read = now;
      return;
    }
  }
  if (byte.reads[0].thread / kWarp == byte.reads[1].thread / kWarp) byte.reads[1] = now;
}

void Access(const void* at, size_t bytes, bool write) {
  State& state = TheState();
  if (!state.running || state.inside) return;
  const auto address = reinterpret_cast<uintptr_t>(at);
  const auto stacks = reinterpret_cast<uintptr_t>(state.stacks.data());
  if (address >= stacks && address < stacks + state.stacks.size()) return;
  state.inside = true;
  Moment now = state.now;
  now.exchanges = state.exchanges[now.thread / kWarp];
  for (uintptr_t i = address; i < address + bytes; ++i) {
    Byte& byte = ByteAt(state, i);
    if (Concurrent(byte.write, now)) {
      Report(write ? "writes" : "a write and a read", i, byte.write, now);
    }
    if (write) {
      for (const Moment& read : byte.reads) {
        if (Concurrent(read, now)) Report("a read and a write", i, read, now);
      }
      byte.write = now;
    } else {
      NoteRead(byte, now);
    }
  }
  state.inside = false;
}

}  // namespace

void StartGrid() {
  State& state = TheState();
  state.pages.clear();
  state.last_page = nullptr;
}

void StartBlock(int64_t block, std::span<const std::byte> shared,
                std::span<const std::byte> stacks) {
  State& state = TheState();
  state.now = {.block = static_cast<int32_t>(block)};
  state.exchanges.fill(0);
  // The memory was another block's before.
  for (size_t i = 0; i < shared.size(); ++i) {
    ByteAt(state, reinterpret_cast<uintptr_t>(shared.data()) + i) = {};
  }
  state.shared = shared;
  state.stacks = stacks;
}

void Enter(int thread) {
  TheState().now.thread = static_cast<int16_t>(thread);
  TheState().running = true;
}
void Leave() { TheState().running = false; }
void PassBarrier() { ++TheState().now.barriers; }
void PassWarp(int warp) { ++TheState().exchanges[warp]; }

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
