// SPDX-License-Identifier: Apache-2.0
#include "base/direct_io.h"

#include <fcntl.h>

namespace syntra {

// Where it fails, the cache is used.
void BypassPageCache(const File& file) {
  const int flags = fcntl(file.descriptor(), F_GETFL);
  if (flags >= 0) fcntl(file.descriptor(), F_SETFL, flags | O_DIRECT);
}

}  // namespace syntra
