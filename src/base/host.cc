#include "base/host.h"

#include <unistd.h>

namespace syntra {

std::string HostName() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace syntra
