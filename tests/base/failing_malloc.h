// SPDX-License-Identifier: Apache-2.0
// For programs that are linked with failing_malloc.
#pragma once

#include <cstdint>

// From now on requests for memory are counted, and the `request`-th alone is refused; 0: none.
extern "C" void RefuseMemory(int64_t request);
// Requests since then.
extern "C" int64_t MemoryRequests();
