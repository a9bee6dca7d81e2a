// How many times this process has asked for memory, by whatever function.
#pragma once

#include <cstdint>

int64_t AllocationCount();
