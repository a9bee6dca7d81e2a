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
#include <deque>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include "base/error.h"
#include "tests/simt/access_check.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace syntra::simt {
namespace {

namespace context = boost::context;

constexpr size_t kStackBytes = 64 << 10;
// The initial value of shared memory in a block.
constexpr auto kUnwritten = std::byte{0xFF};

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

enum class State { kReady, kAtBarrier, kInWarp, kDone };

// An asynchronous copy of 16 bytes that is not complete.
struct Copy {
  std::byte* to;
  const std::byte* from;  // null: zeros
  int64_t group;          // the number of its group in the thread
};

struct Thread {
  context::fiber fiber;
  context::fiber scheduler;
  State state = State::kReady;
  uint32_t mask = 0;  // the lanes that it waits for
  std::deque<Copy> copies;
  int64_t group = 0;  // the group of its next copy
};

// The values that the lanes of a warp exchange. One half is read while the other is written.
struct Warp {
  std::array<std::array<std::byte, kWarp * kSlotBytes>, 2> slots;
  std::array<uint8_t, kWarp> half{};  // the half for each lane's next exchange
};

class Block {
 public:
  // `shared`: the grid's shared memory.
  Block(const Grid& grid, int64_t index, const std::function<void()>& kernel, std::byte* shared);
  // False if the block was abandoned.
  bool Run();

  const Grid& grid() const { return grid_; }
  int64_t index() const { return index_; }
  int current() const { return current_; }
  std::byte* shared() const { return shared_; }

  void WaitAtBarrier() { Wait(State::kAtBarrier, 0); }
  const std::byte* Exchange(uint32_t mask, const void* value, size_t bytes);
  void CopyAsync(std::byte* to, const std::byte* from);
  void CommitCopies() { ++threads_[current_].group; }
  void WaitForCopies(int left);

 private:
  void Wait(State state, uint32_t mask);
  void Resume(int thread);
  bool ReleaseBarrier();
  bool ReleaseWarps();
  void GiveUp() const;

  Grid grid_;
  int64_t index_;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<int> order_;
  std::byte* shared_;
  int current_ = 0;
};

struct World {
  Order order = Order::kForward;
  size_t most_shared_bytes = 227 << 10;
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
                         threads_[i].state = State::kDone;
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

void Block::Wait(State state, uint32_t mask) {
  Thread& thread = threads_[current_];
  thread.state = state;
  thread.mask = mask;
  thread.scheduler = std::move(thread.scheduler).resume();
}

const std::byte* Block::Exchange(uint32_t mask, const void* value, size_t bytes) {
  const int lane = current_ % kWarp;
  Warp& warp = warps_[current_ / kWarp];
  if ((mask >> lane & 1) == 0) Complain(fmt::format("lane {} is not in its own mask", lane));
  auto& slots = warp.slots[warp.half[lane]];
  warp.half[lane] ^= 1;
  if (bytes > 0) std::memcpy(&slots[lane * kSlotBytes], value, bytes);
  Wait(State::kInWarp, mask);
  return slots.data();
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
  const auto waits = [](const Thread& t) {
    return t.state == State::kAtBarrier || t.state == State::kDone;
  };
  if (!std::ranges::all_of(threads_, waits)) return false;
  bool any = false;
  for (Thread& thread : threads_) {
    if (thread.state != State::kAtBarrier) continue;
    thread.state = State::kReady;
    any = true;
  }
  if (any) access_check::PassBarrier();
  return any;
}

bool Block::ReleaseWarps() {
  bool any = false;
  for (size_t w = 0; w < warps_.size(); ++w) {
    Thread* lanes = &threads_[w * kWarp];
    for (int lane = 0; lane < kWarp; ++lane) {
      if (lanes[lane].state != State::kInWarp) continue;
      const uint32_t mask = lanes[lane].mask;
      bool all = true;
      for (int other = 0; other < kWarp; ++other) {
        if (mask >> other & 1) {
          all = all && lanes[other].state == State::kInWarp && lanes[other].mask == mask;
        }
      }
      if (!all) continue;
      for (int other = 0; other < kWarp; ++other) {
        if (mask >> other & 1) lanes[other].state = State::kReady;
      }
      access_check::PassWarp(static_cast<int>(w));
      any = true;
    }
  }
  return any;
}

void Block::GiveUp() const {
  std::array<int, 4> count{};
  for (const Thread& thread : threads_) ++count[static_cast<int>(thread.state)];
  Complain(
      fmt::format("block {} cannot go on: {} threads wait at a barrier, {} for lanes of their "
                  "warp, {} are done",
                  index_, count[static_cast<int>(State::kAtBarrier)],
                  count[static_cast<int>(State::kInWarp)], count[static_cast<int>(State::kDone)]));
}

bool Block::Run() {
  access_check::StartBlock({shared_, grid_.shared_bytes}, the_world.stacks.memory());
  const auto done = [](const Thread& t) { return t.state == State::kDone; };
  while (!std::ranges::all_of(threads_, done)) {
    bool moved = false;
    for (const int thread : order_) {
      if (threads_[thread].state != State::kReady) continue;
      Resume(thread);
      moved = true;
    }
    moved = ReleaseWarps() || moved;
    moved = ReleaseBarrier() || moved;
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
  const bool done = block.Run();
  the_world.block = nullptr;
  return done;
}

}  // namespace

void SetOrder(Order order) { the_world.order = order; }

size_t MostSharedBytes() { return the_world.most_shared_bytes; }
void SetMostSharedBytes(size_t bytes) { the_world.most_shared_bytes = bytes; }

void Run(const Grid& grid, const std::function<void()>& kernel) {
  SYNTRA_CHECK(the_world.block == nullptr, "a kernel within a kernel");
  if (grid.shared_bytes > the_world.most_shared_bytes) {
    Complain(fmt::format("a block of {} bytes of shared memory, where {} are the most",
                         grid.shared_bytes, the_world.most_shared_bytes));
    return;
  }
  if (grid.blocks < 1 || grid.threads < 1 || grid.threads > kMostThreads ||
      grid.threads % kWarp != 0) {
    Complain(fmt::format("a grid of {} blocks of {} threads", grid.blocks, grid.threads));
    return;
  }
  access_check::StartGrid();
  // All blocks use the same memory, so that no other object gets its addresses.
  using access_check::kGuardBytes;
  const std::unique_ptr<std::byte[]> shared(new std::byte[grid.shared_bytes + kGuardBytes]);
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
void SyncThreads() { TheBlock().WaitAtBarrier(); }
const std::byte* Exchange(uint32_t mask, const void* value, size_t bytes) {
  return TheBlock().Exchange(mask, value, bytes);
}
void CopyAsync(void* to, const void* from) {
  TheBlock().CopyAsync(static_cast<std::byte*>(to), static_cast<const std::byte*>(from));
}
void CommitCopies() { TheBlock().CommitCopies(); }
void WaitForCopies(int left) { TheBlock().WaitForCopies(left); }

MatrixRows::MatrixRows(const void* own) {
  if (const size_t astray = reinterpret_cast<uintptr_t>(own) % kCopyBytes; astray != 0) {
    Complain(fmt::format("thread {} gives a matrix row that is not aligned", ThreadIndex()));
    own = static_cast<const std::byte*>(own) - astray;
  }
  slots_ = Exchange(~0u, &own, sizeof(own));
}

const void* MatrixRows::At(int matrix, int row) const {
  const void* at;
  std::memcpy(&at, slots_ + (matrix * 8 + row) * kSlotBytes, sizeof(at));
  return at;
}

}  // namespace syntra::simt
