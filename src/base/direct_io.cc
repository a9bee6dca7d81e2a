// SPDX-License-Identifier: Apache-2.0
#include "base/direct_io.h"

#include <fcntl.h>

namespace syntra {

// If fcntl fails, the file keeps using the cache.
void BypassPageCache(const File& file) {
  const int flags = fcntl(file.descriptor(), F_GETFL);
  if (flags >= 0) fcntl(file.descriptor(), F_SETFL, flags | O_DIRECT);
}

}  // namespace syntra
