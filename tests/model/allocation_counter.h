// SPDX-License-Identifier: Apache-2.0
// The number of allocations of this process, by any function. Those of oneDNN, which allocates
// small tables of arguments in every call, are not counted.
#pragma once

#include <cstdint>

int64_t AllocationCount();
