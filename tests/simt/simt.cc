// SPDX-License-Identifier: Apache-2.0
// The scheduler of fibers. In turn, each thread of a block runs until it waits for a barrier or for
// the lanes of its warp. The block ends when all threads are done. If no thread can continue, the
// block is abandoned.
#include "tests/simt/simt.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>
#include <cstdlib>
#include <deque>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "base/error.h"
#include "core/buffer.h"
#include "kernels/bfloat16.h"
#include "tests/simt/access_check.h"
#include "tests/simt/hopper.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace syntra::simt {
namespace {

namespace context = boost::context;

constexpr size_t kStackBytes = 64 << 10;

// All stacks are in one range of memory, by which addresses on them are recognised. Before each
// stack there is a guard page; a thread that overflows its stack ends the program.
class Stacks {
 public:
  Stacks() {
    void* memory =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    SYNTRA_CHECK(memory != MAP_FAILED, "no memory for {} stacks", kMostThreads);
    memory_ = static_cast<std::byte*>(memory);
    for (size_t i = 0; i < kMostThreads; ++i) mprotect(memory_ + i * kStackBytes, kPage, PROT_NONE);
  }
  ~Stacks() { munmap(memory_, kBytes); }
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;

  context::stack_context Of(int thread) const {
    context::stack_context stack;
    stack.size = kStackBytes - kPage;
    stack.sp = memory_ + (thread + 1) * kStackBytes;
    return stack;
  }
  // Call it after threads were abandoned in the middle of their functions: AddressSanitizer still
  // guards their frames.
  void Forget() {
#if defined(__SANITIZE_ADDRESS__)
    __asan_unpoison_memory_region(memory_, kBytes);
#endif
  }
  std::span<const std::byte> memory() const { return {memory_, kBytes}; }

 private:
  static constexpr size_t kPage = 4096, kBytes = kMostThreads * kStackBytes;
  std::byte* memory_;
};

// All blocks use the same stacks, one after the other.
struct KeepStack {
  using traits_type = context::stack_traits;
  context::stack_context stack;
  context::stack_context allocate() { return stack; }
  void deallocate(context::stack_context&) {}
};

enum class State : uint8_t { kReady, kAtBarrier, kAtWarpBarrier, kInExchange, kUntil, kDone };

// An asynchronous copy of 16 bytes that is not complete.
struct Copy {
  std::byte* to;
  const std::byte* from;  // null: zeros
  int64_t group;          // the number of its group in the thread
};

struct Thread {
  context::fiber fiber;
  context::fiber scheduler;
  std::deque<Copy> copies;
  int64_t group = 0;            // the group of its next copy
  std::function<bool()> until;  // what it waits for in kUntil
};

// The values that the lanes of a warp exchange. One half is read while the other is written.
struct Warp {
  alignas(kSlotBytes) std::array<std::array<std::byte, kWarp * kSlotBytes>, 2> slots;
  std::array<uint8_t, kWarp> half{};  // the half for each lane's next exchange
};

// What the lanes of a warp have exchanged, until this lane's next exchange.
class Slots {
 public:
  explicit Slots(const std::byte* slots) : slots_(slots) {}
  const std::byte* Of(int lane) const { return slots_ + lane * kSlotBytes; }
  template <typename T>
  const T* As(int lane) const {
    return reinterpret_cast<const T*>(Of(lane));
  }

 private:
  const std::byte* slots_;
};

class Block {
 public:
  // `shared`: the grid's shared memory.
  Block(const Grid& grid, int64_t index, const std::function<void()>& kernel, std::byte* shared);
  // False if the block was abandoned.
  bool Run();

  const Grid& grid() const { return grid_; }
  int64_t index() const { return index_; }
  size_t AddressOf(const void* pointer) const;
  int current() const { return current_; }
  std::byte* shared() const { return shared_; }

  void WaitAtBarrier() { Wait(State::kAtBarrier); }
  void WaitAtWarpBarrier() { Wait(State::kAtWarpBarrier); }
  void WaitUntil(std::function<bool()> ready);
  // Passes a value to the other lanes of the warp and waits for theirs.
  Slots Exchange(const void* value, size_t bytes);
  void CopyAsync(std::byte* to, const std::byte* from);
  void CommitCopies() { ++threads_[current_].group; }
  void WaitForCopies(int left);

 private:
  void Wait(State state);
  void Resume(int thread);
  bool ReleaseBarrier();
  bool ReleaseWarps();
  bool ReleaseUntil();
  void GiveUp() const;

  Grid grid_;
  int64_t index_;
  std::vector<Thread> threads_;
  std::vector<State> states_;  // of the threads; apart, since every round looks at all of them
  std::vector<Warp> warps_;
  std::vector<int> order_;
  std::byte* shared_;
  int current_ = 0;
};

struct World {
  Order order = Order::kForward;
  size_t most_shared_bytes = 227 << 10;
  int capability = 90;
  std::string complaints;
  Stacks stacks;
  Block* block = nullptr;
};
World the_world;

Block& TheBlock() {
  Block* block = the_world.block;
  SYNTRA_CHECK(block != nullptr, "GPU code outside a kernel");
  return *block;
}

std::vector<int> OrderOf(int threads, int64_t block) {
  std::vector<int> order(threads);
  std::iota(order.begin(), order.end(), 0);
  if (the_world.order == Order::kBackward) std::ranges::reverse(order);
  if (the_world.order == Order::kShuffled) {
    std::ranges::shuffle(order, std::mt19937(static_cast<uint32_t>(block)));
  }
  return order;
}

Block::Block(const Grid& grid, int64_t index, const std::function<void()>& kernel,
             std::byte* shared)
    : grid_(grid),
      index_(index),
      threads_(grid.threads),
      states_(grid.threads, State::kReady),
      warps_(grid.threads / kWarp),
      order_(OrderOf(grid.threads, index)),
      shared_(shared) {
  std::fill_n(shared_, grid.shared_bytes, kUnwritten);
  for (int i = 0; i < grid.threads; ++i) {
    const context::stack_context stack = the_world.stacks.Of(i);
    threads_[i].fiber =
        context::fiber(std::allocator_arg, context::preallocated(stack.sp, stack.size, stack),
                       KeepStack{stack}, [this, i, &kernel](context::fiber&& scheduler) {
                         threads_[i].scheduler = std::move(scheduler);
                         kernel();
                         states_[i] = State::kDone;
                         if (!threads_[i].copies.empty()) {
                           Complain(fmt::format("thread {} never waited for {} of its copies", i,
                                                threads_[i].copies.size()));
                         }
                         return std::move(threads_[i].scheduler);
                       });
  }
}

void Block::Resume(int thread) {
  current_ = thread;
  access_check::Enter(thread);
  threads_[thread].fiber = std::move(threads_[thread].fiber).resume();
  access_check::Leave();
}

void Block::Wait(State state) {
  Thread& thread = threads_[current_];
  states_[current_] = state;
  thread.scheduler = std::move(thread.scheduler).resume();
}

void Block::WaitUntil(std::function<bool()> ready) {
  threads_[current_].until = std::move(ready);
  Wait(State::kUntil);
}

size_t Block::AddressOf(const void* pointer) const {
  const auto address = static_cast<size_t>(static_cast<const std::byte*>(pointer) - shared_);
  if (address >= grid_.shared_bytes) {
    Complain(fmt::format("thread {} takes what is not shared memory for it", current_));
  }
  return address;
}

Slots Block::Exchange(const void* value, size_t bytes) {
  const int lane = current_ % kWarp;
  Warp& warp = warps_[current_ / kWarp];
  auto& slots = warp.slots[warp.half[lane]];
  warp.half[lane] ^= 1;
  std::memcpy(&slots[lane * kSlotBytes], value, bytes);
  Wait(State::kInExchange);
  return Slots(slots.data());
}

// The copy may access its memory at any time from here until the wait, so both ends are checked.
void NoteCopy(const Copy& copy) {
  access_check::Note(copy.to, kCopyBytes, true);
  if (copy.from != nullptr) access_check::Note(copy.from, kCopyBytes, false);
}

void Block::CopyAsync(std::byte* to, const std::byte* from) {
  const access_check::Aside aside;
  const auto aligned = [](const void* at) {
    return reinterpret_cast<uintptr_t>(at) % kCopyBytes == 0;
  };
  if (to < shared_ || to + kCopyBytes > shared_ + grid_.shared_bytes) {
    return Complain(fmt::format("thread {} copies to what is not shared memory", current_));
  }
  if (!aligned(to) || !aligned(from)) {
    return Complain(fmt::format("thread {} copies bytes that are not aligned", current_));
  }
  Thread& thread = threads_[current_];
  const Copy copy{to, from, thread.group};
  NoteCopy(copy);
  thread.copies.push_back(copy);
  std::fill_n(to, kCopyBytes, kUnwritten);
}

void Block::WaitForCopies(int left) {
  const access_check::Aside aside;
  Thread& thread = threads_[current_];
  while (!thread.copies.empty() && thread.copies.front().group + left < thread.group) {
    const Copy copy = thread.copies.front();
    NoteCopy(copy);
    if (copy.from != nullptr) {
      std::copy_n(copy.from, kCopyBytes, copy.to);
    } else {
      std::fill_n(copy.to, kCopyBytes, std::byte{0});
    }
    thread.copies.pop_front();
  }
}

bool Block::ReleaseBarrier() {
  const auto waits = [](State s) { return s == State::kAtBarrier || s == State::kDone; };
  if (!std::ranges::all_of(states_, waits)) return false;
  if (std::ranges::find(states_, State::kAtBarrier) == states_.end()) return false;
  std::ranges::replace(states_, State::kAtBarrier, State::kReady);
  access_check::PassBarrier();
  return true;
}

bool Block::ReleaseWarps() {
  bool any = false;
  for (size_t w = 0; w < warps_.size(); ++w) {
    const std::span<State> lanes(&states_[w * kWarp], kWarp);
    const State state = lanes.front();
    if (state != State::kAtWarpBarrier && state != State::kInExchange) continue;
    if (!std::ranges::all_of(lanes, [&](State lane) { return lane == state; })) continue;
    std::ranges::fill(lanes, State::kReady);
    if (state == State::kAtWarpBarrier) access_check::PassWarpBarrier(static_cast<int>(w));
    any = true;
  }
  return any;
}

bool Block::ReleaseUntil() {
  bool any = false;
  for (size_t i = 0; i < threads_.size(); ++i) {
    if (states_[i] != State::kUntil || !threads_[i].until()) continue;
    states_[i] = State::kReady;
    any = true;
  }
  return any;
}

void Block::GiveUp() const {
  const auto count = [&](State state) { return std::ranges::count(states_, state); };
  Complain(fmt::format(
      "block {} cannot go on: {} threads wait at a barrier, {} for lanes of their warp, {} for a "
      "phase of a barrier in shared memory, {} are done",
      index_, count(State::kAtBarrier), count(State::kAtWarpBarrier) + count(State::kInExchange),
      count(State::kUntil), count(State::kDone)));
}

bool Block::Run() {
  access_check::StartBlock(grid_.threads, {shared_, grid_.shared_bytes}, the_world.stacks.memory());
  while (!std::ranges::all_of(states_, [](State state) { return state == State::kDone; })) {
    bool moved = false;
    for (const int thread : order_) {
      if (states_[thread] != State::kReady) continue;
      Resume(thread);
      moved = true;
    }
    moved = ReleaseWarps() || moved;
    moved = ReleaseBarrier() || moved;
    // What these threads wait for happens only when no other thread can go on.
    moved = moved || ReleaseUntil();
    if (!moved) {
      GiveUp();
      return false;
    }
  }
  return true;
}

}  // namespace

namespace {

bool RunBlock(const Grid& grid, int64_t index, const std::function<void()>& kernel,
              std::byte* shared) {
  Block block(grid, index, kernel, shared);
  the_world.block = &block;
  hopper::StartBlock(grid.threads);
  const bool done = block.Run();
  hopper::EndBlock();
  the_world.block = nullptr;
  return done;
}

}  // namespace

void SetOrder(Order order) { the_world.order = order; }

void InEveryOrder(const std::function<void()>& run) {
  for (Order order : {Order::kBackward, Order::kShuffled, Order::kForward}) {
    SetOrder(order);
    run();
  }
}

size_t MostSharedBytes() { return the_world.most_shared_bytes; }
void SetMostSharedBytes(size_t bytes) { the_world.most_shared_bytes = bytes; }
int Capability() { return the_world.capability; }
void SetCapability(int capability) { the_world.capability = capability; }

void Run(const Grid& grid, const std::function<void()>& kernel) {
  SYNTRA_CHECK(the_world.block == nullptr, "a kernel within a kernel");
  if (grid.shared_bytes > the_world.most_shared_bytes) {
    Complain(fmt::format("a block of {} bytes of shared memory, where {} are the most",
                         grid.shared_bytes, the_world.most_shared_bytes));
    return;
  }
  if (grid.blocks < 1 || grid.blocks > INT32_MAX || grid.threads < 1 ||
      grid.threads > kMostThreads || grid.threads % kWarp != 0) {
    Complain(fmt::format("a grid of {} blocks of {} threads", grid.blocks, grid.threads));
    return;
  }
  access_check::StartGrid();
  // All blocks use the same memory, so that no other object gets its addresses.
  using access_check::kGuardBytes;
  constexpr size_t kAlignment = 1024;  // that of gpu.h's SharedBytes
  const size_t bytes = AlignUp(grid.shared_bytes + kGuardBytes, kAlignment);
  const std::unique_ptr<std::byte, decltype(&std::free)> shared(
      static_cast<std::byte*>(std::aligned_alloc(kAlignment, bytes)), &std::free);
  const access_check::Forbidden guard({shared.get() + grid.shared_bytes, kGuardBytes});
  for (int64_t i = 0; i < grid.blocks; ++i) {
    if (!RunBlock(grid, i, kernel, shared.get())) the_world.stacks.Forget();
  }
}

std::string TakeComplaints() { return std::exchange(the_world.complaints, {}); }

void Complain(const std::string& what) {
  const access_check::Aside aside;
  std::string& all = the_world.complaints;
  // The first complaints suffice; a race in a loop would fill the memory.
  if (all.size() < 4000) all += what + '\n';
}

int ThreadIndex() { return TheBlock().current(); }
int ThreadCount() { return TheBlock().grid().threads; }
int64_t BlockIndex() { return TheBlock().index(); }
int64_t BlockCount() { return TheBlock().grid().blocks; }
std::byte* SharedMemory() { return TheBlock().shared(); }
uint32_t SharedAddress(const void* pointer) {
  return static_cast<uint32_t>(TheBlock().AddressOf(pointer));
}
void SyncThreads() { TheBlock().WaitAtBarrier(); }
void SyncWarp() { TheBlock().WaitAtWarpBarrier(); }
void WaitUntil(std::function<bool()> ready) { TheBlock().WaitUntil(std::move(ready)); }
void CopyAsync(void* to, const void* from) {
  TheBlock().CopyAsync(static_cast<std::byte*>(to), static_cast<const std::byte*>(from));
}
void CommitCopies() { TheBlock().CommitCopies(); }
void WaitForCopies(int left) { TheBlock().WaitForCopies(left); }

void Shuffle(void* value, size_t bytes, int lane) {
  const Slots slots = TheBlock().Exchange(value, bytes);
  if (lane < 0 || lane >= kWarp) {
    return Complain(fmt::format("a lane asks for the value of lane {} of its warp", lane));
  }
  std::memcpy(value, slots.Of(lane), bytes);
}

void LoadMatrices(uint32_t (&pairs)[4], const void* row, bool transposed) {
  if (const size_t astray = reinterpret_cast<uintptr_t>(row) % kCopyBytes; astray != 0) {
    Complain(fmt::format("thread {} gives a matrix row that is not aligned", ThreadIndex()));
    row = static_cast<const std::byte*>(row) - astray;
  }
  const Slots slots = TheBlock().Exchange(&row, sizeof(row));
  const int outer = ThreadIndex() % kWarp / 4, inner = ThreadIndex() % 4 * 2;
  const auto bits = [&](int matrix, int line, int column, size_t bytes) {
    uint32_t read = 0;
    const std::byte* from = *slots.As<const std::byte*>(matrix * 8 + line) + 2 * column;
    access_check::Note(from, bytes, false);
    std::memcpy(&read, from, bytes);
    return read;
  };
  for (int q = 0; q < 4; ++q) {
    pairs[q] = transposed ? bits(q, inner, outer, 2) | bits(q, inner + 1, outer, 2) << 16
                          : bits(q, outer, inner, 4);
  }
}

void MultiplyMatrices(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  // The pairs as numbers: pair r of A is in row lane / 4 + r % 2 * 8, pair r of B in column
  // lane / 4, both at inner elements 2 * (lane % 4) + 8 * half and the next.
  struct Pairs {
    float a[4][2], b[2][2];
  } own;
  const auto number = [](uint32_t pair, int i) {
    return ToFloat(BFloat16{static_cast<uint16_t>(pair >> 16 * i)});
  };
  for (int i = 0; i < 2; ++i) {
    for (int r = 0; r < 4; ++r) own.a[r][i] = number(a[r], i);
    for (int r = 0; r < 2; ++r) own.b[r][i] = number(b[r], i);
  }
  const Slots slots = TheBlock().Exchange(&own, sizeof(own));
  const int row = ThreadIndex() % kWarp / 4, column = ThreadIndex() % 4 * 2;
  for (int half = 0; half < 2; ++half) {
    for (int inner = 0; inner < 4; ++inner) {
      const auto& rows = slots.As<Pairs>(row * 4 + inner)->a;
      const Pairs* columns[] = {slots.As<Pairs>(column * 4 + inner),
                                slots.As<Pairs>(column * 4 + 4 + inner)};
      for (int i = 0; i < 2; ++i) {
        for (int n = 0; n < 4; ++n) {
          c[n] += rows[half * 2 + n / 2][i] * columns[n % 2]->b[half][i];
        }
      }
    }
  }
}

}  // namespace syntra::simt
