// SPDX-License-Identifier: Apache-2.0
// How many times this process has asked for memory, by whatever function. What oneDNN asks for does
// not count: it makes small tables of arguments at every call.
#pragma once

#include <cstdint>

int64_t AllocationCount();
