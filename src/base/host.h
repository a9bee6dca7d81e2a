// The name of this machine, for people.
#pragma once

#include <string>

namespace syntra {

std::string HostName();

}  // namespace syntra
